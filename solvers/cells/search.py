"""Assignments of clients to cells: moves, swaps and flows that end the slowest cell sooner."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from channels.arrays import FloatArray, IntArray
from solvers.cells.cell_shares import CellShares, EqualBands
from solvers.cells.programs import matched

_STEPS = 20
"""Maximum number of steps for each client."""
_FLOWS = 200
"""Maximum number of flows of ``resized``."""
_SOONER = 1 - 1e-9


def improved(problem: CellShares, cell_of: IntArray) -> tuple[IntArray, FloatArray]:
    """An assignment that no move or swap with the slowest cell improves, and its seconds [cells].

    Each step moves a client of the slowest cell, or swaps it for another, so that both cells end
    before the slowest did; of these, it takes the step of the least load at that time.
    """
    seconds = problem.seconds(cell_of)
    for _ in range(_STEPS * len(cell_of)):
        trial = _stepped(problem, cell_of, int(seconds.argmax()), float(seconds.max()))
        cells = np.unique([cell_of[trial != cell_of], trial[trial != cell_of]])
        after = seconds.copy()
        after[cells] = problem.seconds(trial, cells)[cells]
        if not cells.size or not after[cells].max() < seconds.max():
            break  # without a step, or one that only rounding errors make good
        cell_of, seconds = trial, after
    return cell_of, seconds


def _stepped(problem: CellShares, cell_of: IntArray, slowest: int, end: float) -> IntArray:
    """The assignment after the best move or swap of a client of the slowest cell, if any."""
    shares, trial = problem.shares(end), cell_of.copy()
    sizes = np.bincount(cell_of, minlength=len(problem.most))
    joined = np.zeros(len(sizes))
    within = shares[np.arange(len(cell_of)), cell_of]
    problem.join.at(joined, cell_of, within)
    rest = problem.others(within, joined, cell_of)
    members, others = np.flatnonzero(cell_of == slowest), np.flatnonzero(cell_of != slowest)
    if sizes[slowest] > problem.fewest[slowest]:
        left = problem.load(rest[members], sizes[slowest] - 1)
        there = problem.load(problem.join(joined, shares[members]), sizes + 1)
        there[:, (sizes >= problem.most) | (np.arange(len(sizes)) == slowest)] = np.inf
        load = np.maximum(left[:, None], there)
        client, cell = np.unravel_index(int(load.argmin()), load.shape)
        if load[client, cell] < 1:
            trial[members[client]] = cell
            return trial
    if others.size:
        received = shares[None, others, slowest]
        here = problem.load(problem.join(rest[members, None], received), sizes[slowest])
        moved = shares[np.ix_(members, cell_of[others])]
        there = problem.load(problem.join(rest[others], moved), sizes[cell_of[others]])
        load = np.maximum(here, there)
        client, other = np.unravel_index(int(load.argmin()), load.shape)
        if load[client, other] < 1:
            trial[members[client]], trial[others[other]] = cell_of[others[other]], slowest
    return trial


def resized(
    problem: EqualBands, cell_of: IntArray, seconds: FloatArray
) -> tuple[IntArray, FloatArray]:
    """With equal bands, an assignment that ends sooner with one client more and one less in cells.

    For numbers of clients of each cell, a flow decides whether an assignment ends before a time.
    """
    pairs = _transfers(seconds)
    for _ in range(_FLOWS):
        pair = next(pairs, None)
        if pair is None:
            break
        sizes = np.bincount(cell_of, minlength=len(seconds))
        sizes[[*pair]] += (-1, 1)
        if (sizes < problem.fewest).any() or (sizes > problem.most).any():
            continue
        in_time = problem.alone(np.maximum(sizes, 1)) <= seconds.max() * _SOONER
        trial = matched(in_time, sizes, sizes)
        if trial is not None:
            cell_of, seconds = improved(problem, trial)
            pairs = _transfers(seconds)
    return cell_of, seconds


def _transfers(seconds: FloatArray) -> Iterator[tuple[int, int]]:
    """Cells that lose a client, the slowest first, and cells that get it."""
    order = np.argsort(-seconds, kind="stable").tolist()
    return ((loser, winner) for loser in order for winner in order[::-1] if loser != winner)
