"""The matching of clients to blocks with the least expected loss.

Of each block only the best few clients matter, as many as clients can have blocks: if the matching
uses another client in it, one of these is free and takes its place without a larger loss. So 1e5
clients leave at most a few per block and block.
"""

from __future__ import annotations

import numpy as np

from channels.arrays import FloatArray, IntArray


def least_loss(costs: FloatArray, alone: FloatArray, count: int | None) -> IntArray | None:
    """The block of each client [clients], -1 for none; None if ``count`` clients cannot have one.

    Args:
        costs: [clients, blocks], >= 0, at most ``alone``; infinite in forbidden blocks.
        alone: [clients], costs of clients without a block.
        count: number of clients with a block; None for any number.
    """
    gains = alone[:, None] - costs
    useful = gains > 0 if count is None else np.isfinite(costs)
    rows = np.flatnonzero(useful.any(1))
    most = gains.shape[1] if count is None else count
    if rows.size > most:
        kept = np.argpartition(-gains[rows], most - 1, axis=0)[:most]
        rows = rows[np.unique(kept)]
    if count is None:
        part, blocks = _any_number(costs[rows], alone[rows], gains[rows])
    elif _most_clients(costs[rows]) < count:
        return None
    else:
        part, blocks = _this_many(costs[rows], gains[rows], count)
    block = np.full(len(alone), -1)
    block[rows[part]] = blocks
    return block


def most_clients(costs: FloatArray) -> int:
    """Number of clients that can have blocks at the same time."""
    return _most_clients(costs[np.isfinite(costs).any(1)])


def _most_clients(costs: FloatArray) -> int:
    from scipy.sparse import csr_array  # SciPy loads slowly
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not costs.size:
        return 0
    pairs = maximum_bipartite_matching(csr_array(np.isfinite(costs).astype(np.int8)))
    return int(np.count_nonzero(pairs >= 0))


def _any_number(
    costs: FloatArray, alone: FloatArray, gains: FloatArray
) -> tuple[IntArray, IntArray]:
    """Clients and their blocks; pairs that gain nothing are left out."""
    from scipy.optimize import linear_sum_assignment  # SciPy loads slowly

    if len(costs) <= costs.shape[1]:  # all have blocks: costs keep small losses exactly
        clients, blocks = linear_sum_assignment(np.minimum(costs, alone[:, None]))
    else:
        clients, blocks = linear_sum_assignment(np.maximum(gains, 0), maximize=True)
    some = gains[clients, blocks] > 0
    return clients[some], blocks[some]


def _this_many(costs: FloatArray, gains: FloatArray, count: int) -> tuple[IntArray, IntArray]:
    """As ``_any_number``, for exactly ``count`` clients.

    Every block is matched, and the others to placeholders. Their gain is above all others, so that
    all of them are used: in place of any client, an unused one would gain more.
    """
    from scipy.optimize import linear_sum_assignment  # SciPy loads slowly

    number, width = costs.shape
    if number == count:
        return linear_sum_assignment(costs)  # type: ignore[no-any-return]
    high = 2 * gains.max() or 1.0
    every = np.concatenate([gains, np.full((width - count, width), high)])
    clients, blocks = linear_sum_assignment(-every)
    real = clients < number
    return clients[real], blocks[real]
