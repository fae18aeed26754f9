"""Prices of blocks, which prove how small the expected loss can be.

Assignment is a linear program. Its dual has a price v_n >= 0 of each block, and with a fixed number
k of clients a price w of having a block. If each client takes what is cheapest for it, no block or
the block of least c_in + v_n + w, the sum of what they pay less sum_n v_n + k w bounds the loss of
every assignment from below, for any prices.
"""

from __future__ import annotations

import numpy as np

from channels.arrays import FloatArray, IntArray


def prices(
    costs: FloatArray, alone: FloatArray, block: IntArray, count: int | None
) -> tuple[FloatArray, float]:
    """The least prices at which an assignment of least loss is everyone's cheapest choice.

    They are longest paths through blocks: to n from n' by what the client of n' gains if it takes
    n, from what a client without a block gains in the first one. Without a cycle of positive gain,
    as in an assignment of least loss, they exist.

    Args:
        costs: c [clients, blocks]; infinite in forbidden blocks.
        alone: [clients], costs of clients without a block.
        block: [clients], -1 for none.
        count: number of clients with a block; None for any number.

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
        costs: c [clients, blocks]; infinite in forbidden blocks.
        alone: [clients], costs of clients without a block.
        price: v [blocks], >= 0.
        entry: w; 0 if ``count`` is None.
        count: k; None for any number.
    """
    cheapest = np.minimum(alone, (costs + (price + entry)).min(1))
    return float(cheapest.sum() - price.sum() - (count or 0) * entry)


def _longest(start: FloatArray, moves: FloatArray, at: IntArray) -> FloatArray:
    """Longest paths to all blocks (Bellman-Ford), with as many steps as there are blocks at most.

    Args:
        start: [blocks], lengths of paths that begin there.
        moves: [clients with blocks, blocks], lengths of steps.
        at: [clients with blocks], where these steps begin.
    """
    longest = start
    for _ in range(len(at)):
        further = np.maximum(longest, (longest[at][:, None] + moves).max(0))
        if (further == longest).all():
            break
        longest = further
    return longest
