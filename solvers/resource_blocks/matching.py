"""The matching of clients to blocks with the least expected loss, and prices that prove it.

Assignment is a linear program. Its dual has a price v_n >= 0 of each block, and with a fixed number
k of clients a price w of having a block. If each client takes what is cheapest for it, no block or
the block of least c_in + v_n + w, the sum of what they pay less sum_n v_n + k w bounds the loss of
every assignment from below, for any prices.
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
    from scipy.optimize import linear_sum_assignment  # SciPy loads slowly

    number, width = costs.shape
    gains, rows = alone[:, None] - costs, np.arange(number)
    if number == count or (count is None and number <= width):
        matrix = costs if count else np.minimum(costs, alone[:, None])  # small losses stay exact
    elif count is None:
        matrix = np.minimum(-gains, 0)
    else:
        # Of each block only the best ``count`` clients matter: another one could be replaced by
        # one of these that has no block. All blocks are matched, width - count of them to
        # placeholders, whose gain is above all others so that none stays unused.
        if number > count:
            rows = np.unique(np.argpartition(-gains, count - 1, axis=0)[:count])
        high = 2 * gains.max() or 1.0
        matrix = -np.concatenate([gains[rows], np.full((width - count, width), high)])
    try:
        clients, blocks = linear_sum_assignment(matrix)
    except ValueError:  # every matching has a forbidden block
        return None
    real = clients < len(rows)
    clients, blocks = rows[clients[real]], blocks[real]
    if count is None:  # pairs that gain nothing are left out
        useful = gains[clients, blocks] > 0
        clients, blocks = clients[useful], blocks[useful]
    block = np.full(number, -1)
    block[clients] = blocks
    return block


def most_clients(costs: FloatArray) -> int:
    """Number of clients that can have blocks at the same time."""
    from scipy.sparse import csr_array  # SciPy loads slowly
    from scipy.sparse.csgraph import maximum_bipartite_matching

    pairs = maximum_bipartite_matching(csr_array(np.isfinite(costs).astype(np.int8)))
    return int(np.count_nonzero(pairs >= 0))


def prices(
    costs: FloatArray, alone: FloatArray, block: IntArray, count: int | None
) -> tuple[FloatArray, float]:
    """The least prices at which an assignment of least loss is everyone's cheapest choice.

    They are longest paths through blocks: to n from n' by what the client of n' gains if it takes
    n, from what a client without a block gains in the first one. Without a cycle of positive gain,
    as in an assignment of least loss, they exist.

    Args:
        costs, alone, count: those of :func:`least_loss`.
        block: [clients], -1 for none.

    Returns:
        v [blocks] and w.
    """
    sends = block >= 0
    at = block[sends]
    paid = np.take_along_axis(costs[sends], at[:, None], 1)
    moves = paid - costs[sends]
    entry = 0.0
    if count is not None:
        # The largest w: how much the first client to give its block up loses, after moves.
        start = np.full(costs.shape[1], -np.inf)
        start[at] = 0.0
        entry = float((alone[sends] - paid[:, 0] - _longest(start, moves, at)[at]).min())
    waiting = (alone[:, None] - costs).max(0, where=~sends[:, None], initial=-np.inf)
    return _longest(np.maximum(entry, waiting), moves, at) - entry, entry


def least_possible(
    costs: FloatArray, alone: FloatArray, price: FloatArray, entry: float, count: int | None
) -> float:
    """A bound on the loss of all assignments, valid for any prices >= 0 and any ``entry``.

    Args:
        costs, alone, count: those of :func:`least_loss`.
        price: v [blocks], >= 0.
        entry: w; 0 if ``count`` is None.
    """
    cheapest = np.minimum(alone, (costs + (price + entry)).min(1))
    return float(cheapest.sum() - price.sum() - (count or 0) * entry)


def _longest(start: FloatArray, moves: FloatArray, at: IntArray) -> FloatArray:
    """Longest paths to all blocks (Bellman-Ford), in at most as many steps as there are blocks."""
    longest = start
    for _ in range(len(at)):
        further = np.maximum(longest, (longest[at][:, None] + moves).max(0))
        if (further == longest).all():
            break
        longest = further
    return longest
