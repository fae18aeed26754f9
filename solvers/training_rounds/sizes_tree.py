"""Whole sizes of many cells by branch and bound, where HiGHS proves little in a minute.

The energy of q units within t seconds is at least a q + s t for each tangent of a unit's energy,
and for means of neighbouring tangents: a and s are functions of tau = t / q. The mean cost of sizes
p_j and ends T_w is least where in each draw the cells' s sum to minus the price of a second; then
the a and s there bound the cost of all sizes from below,

    U >= sum_j c_j p_j + constant,

which the sizes of a node minimise by filling the cells with the least c_j first. A node's fractions
follow by steps that are exact for separable costs; whatever they are, its bound holds. Nodes with
the lowest bounds are split first, many at a time. Nothing depends on time: the search ends after a
number of nodes, with the bound of those that are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray, IntArray
from solvers.training_rounds.sizes_program import SizesAnswer, SizesCase
from solvers.training_rounds.units import Units

_RATIOS = np.concatenate(
    [np.geomspace(0.2, 0.7, 12)[:-1], np.geomspace(0.7, 1.4, 96), np.geomspace(1.4, 40.0, 30)[1:]]
)
"""Tangents' times relative to those of the fractions: 0.7 % apart near them."""
_BARRIER = 8
"""Power by which prices of the end grow where cells would need shorter units than possible."""
_NODES, _TOGETHER = 20_000, 64
"""Most nodes, and how many are split at a time."""
_STEPS, _ROOT_STEPS, _HALVINGS = 3, 6, 40
_SIMPLE = 1e-6
"""Distance from whole sizes below which a node is not split."""


class _Nodes(NamedTuple):
    """Boxes of sizes [nodes, cells], the fractions within them, and bounds [nodes]."""

    low: FloatArray
    high: FloatArray
    steps: FloatArray
    bound: FloatArray
    worst: FloatArray  # loss by which cell of each node would grow most if it were whole

    def rows(self, rows: IntArray) -> _Nodes:
        return _Nodes(*(array[rows] for array in self))


class SizesTree:
    """Bounds and costs of sizes near those of a program in fractions.

    Args:
        units: of all cells and draws.
        case: constraints, without a limit on the ends; seconds and joules cost something.
        steps, ends: sizes [cells] and ends [draws] near which tangents are added.
    """

    def __init__(self, units: Units, case: SizesCase, steps: FloatArray, ends: FloatArray) -> None:
        self.case = case
        self.second, self.joule = case.weights
        size = np.maximum(steps + case.fixed, 1e-9)
        soonest = units.soonest[case.local]
        window = ends[:, None] - case.lost_with(steps)
        self.near = np.maximum(window / size, soonest)
        tau = _RATIOS[:, None, None] * self.near
        short = np.maximum(soonest / tau, 1.0)
        lines = units.solve(np.maximum(tau, soonest), np.full(len(tau), case.local))[1]
        base = lines.base + lines.per_step * float(units.local_steps[case.local])
        slope = lines.per_second * short**_BARRIER
        base = base + (lines.per_second - slope) * soonest
        # Energies are at least 0: the last line.
        none = np.zeros((1, *base.shape[1:]))
        self.base, self.slope = np.concatenate([base, none]), np.concatenate([slope, none])
        self.steps, self.ends = steps, ends

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")  # of sizes 0: bounds stay valid
    def search(self, gap: float) -> SizesAnswer:
        """The best whole sizes, and a bound that no whole sizes undercut.

        Args:
            gap: relative, at which the search ends.
        """
        case = self.case
        nodes = self._relaxed(case.low[None], case.high[None], self.steps[None], 4 * _STEPS)
        best, cost = self._rounded(nodes)
        closed, number = np.inf, 1
        while len(nodes.bound):
            order = np.argsort(nodes.bound, kind="stable")
            enough = cost - gap * abs(cost)
            if nodes.bound[order[0]] >= enough or number >= _NODES:
                break
            some = order[:_TOGETHER]
            parents, nodes = nodes.rows(some), nodes.rows(order[_TOGETHER:])
            cell = parents.worst.argmax(-1)
            row = np.arange(len(cell))
            whole = parents.worst[row, cell] <= 0
            closed = min(closed, parents.bound[whole].min(initial=np.inf))
            parents, cell = parents.rows(np.flatnonzero(~whole)), cell[~whole]
            if not len(cell):
                continue
            row = np.arange(len(cell))
            floor = np.floor(parents.steps[row, cell])
            below, above = parents.high.copy(), parents.low.copy()
            below[row, cell], above[row, cell] = floor, floor + 1
            low, high = np.concatenate([parents.low, above]), np.concatenate([below, parents.high])
            fits = (low.sum(-1) <= case.quota) & (high.sum(-1) >= case.quota)
            twice = np.concatenate([parents.steps, parents.steps])
            inherited = np.concatenate([parents.bound, parents.bound])[fits]
            children = self._relaxed(low[fits], high[fits], twice[fits], _STEPS)
            children = children._replace(bound=np.maximum(children.bound, inherited))
            number += len(children.bound)
            trial, value = self._rounded(children)
            if value < cost:
                best, cost = trial, value
            nodes = _Nodes(*(np.concatenate(pair) for pair in zip(nodes, children, strict=True)))
        bound = min(closed, float(nodes.bound.min(initial=np.inf)), cost)
        return SizesAnswer(best, self._priced(best[None]).ends[0], bound, None)

    def _rounded(self, nodes: _Nodes) -> tuple[FloatArray, float]:
        """The best whole sizes next to the nodes' fractions, and their cost."""
        whole = np.floor(nodes.steps + _SIMPLE)
        missing = np.round(self.case.quota - whole.sum(-1, keepdims=True))
        room = nodes.high > whole
        order = np.argsort(np.where(room, whole - nodes.steps, np.inf), kind="stable")
        rank = np.argsort(order, kind="stable")
        whole += (rank < missing) & room
        priced = self._priced(whole)
        cost = priced.constant + (priced.each * whole).sum(-1)
        cost = np.where((whole.sum(-1) == self.case.quota) & ~np.isnan(cost), cost, np.inf)
        least = int(cost.argmin())
        return whole[least], float(cost[least])

    def _relaxed(self, low: FloatArray, high: FloatArray, steps: FloatArray, number: int) -> _Nodes:
        """Fractions within boxes [nodes, cells], and bounds."""
        steps = _moved(steps, np.zeros(steps.shape), np.ones(steps.shape), low, high, self.case)
        bound, ends = np.full(len(low), -np.inf), None
        for _ in range(number):
            priced = self._priced(steps, ends)
            bound, ends = np.fmax(bound, self._bounds(priced, low, high)), priced.ends
            steps = _moved(steps, priced.each, priced.bend, low, high, self.case)
        part = steps - np.floor(steps)
        split = (part > _SIMPLE) & (part < 1 - _SIMPLE) & (high > low)
        return _Nodes(low, high, steps, bound, np.where(split, priced.bend * part * (1 - part), 0))

    def _bounds(self, priced: _Priced, low: FloatArray, high: FloatArray) -> FloatArray:
        """Least costs of the boxes by the prices of sizes, [nodes]."""
        order = priced.each.argsort(-1)
        each, low, high = (np.take_along_axis(x, order, -1) for x in (priced.each, low, high))
        room = high - low
        missing = self.case.quota - low.sum(-1, keepdims=True) - (room.cumsum(-1) - room)
        sizes = low + np.clip(missing, 0, room)
        total = priced.constant + (each * sizes).sum(-1)
        rounding = 1e-12 * (np.abs(priced.constant) + np.abs(each * sizes).sum(-1))
        return np.asarray(total - rounding)

    def _priced(self, steps: FloatArray, ends: FloatArray | None = None) -> _Priced:
        """Ends and prices of sizes [nodes, cells]; the search for ends begins at ``ends``."""
        case, second, joule = self.case, self.second, self.joule
        size = np.maximum(steps + case.fixed, 1e-9)[:, None]
        lost = case.lost + case.growth * steps[:, None]
        if ends is None:
            ends = np.broadcast_to(self.ends, (len(steps), len(self.ends)))
        for _ in range(_ROOT_STEPS):
            _, slope, bend = self._lines((ends[..., None] - lost) / size)
            taken = -joule * slope.sum(-1)
            drop = joule * (bend / size).sum(-1) * ends / taken  # -d ln taken / d ln ends
            change = np.log(taken / second) / drop
            ends = ends * np.exp(np.clip(np.nan_to_num(change), -0.7, 0.7))
        tau = (ends[..., None] - lost) / size
        base, slope, bend = self._lines(tau)
        # Of joules that are worth more than a second, a fraction; no end is before 0.
        share = np.minimum(second / (-joule * slope.sum(-1)), 1.0)[..., None]
        base, slope = share * base, share * slope
        prices = joule * (base - slope * case.growth).mean(-2)
        constant = joule * (base * case.fixed - slope * case.lost).sum(-1)
        curve = joule * (bend * (tau + case.growth) ** 2 / size).mean(-2)
        least = 1e-9 * np.abs(prices).max(-1, keepdims=True) + 1e-300
        return _Priced(ends, prices, constant.mean(-1), np.maximum(curve, least))

    def _lines(self, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Joules per unit and per second of means of tangents, and the latter's derivative."""
        ratio = tau / self.near
        place = np.clip(np.searchsorted(_RATIOS, ratio) - 1, 0, len(_RATIOS) - 1)
        width = np.append(np.diff(_RATIOS), _RATIOS[-1])[place]
        share = np.clip((ratio - _RATIOS[place]) / width, 0.0, 1.0)
        draw, cell = np.indices(self.near.shape)
        first = place, draw, cell
        second = place + 1, draw, cell
        base = self.base[first] + share * (self.base[second] - self.base[first])
        rise = self.slope[second] - self.slope[first]
        return base, self.slope[first] + share * rise, rise / (width * self.near)


class _Priced(NamedTuple):
    """The least cost of sizes is at least ``constant`` + ``each`` x sizes.

    Args:
        ends: [nodes, draws].
        each: [nodes, cells].
        constant: [nodes].
        bend: second derivatives of the cost of each cell alone, [nodes, cells].
    """

    ends: FloatArray
    each: FloatArray
    constant: FloatArray
    bend: FloatArray


def _moved(
    steps: FloatArray,
    each: FloatArray,
    bend: FloatArray,
    low: FloatArray,
    high: FloatArray,
    case: SizesCase,
) -> FloatArray:
    """Minimise sum each d + bend d^2 / 2 over the moves d of ``steps`` within boxes, by halving."""
    begin = (each + bend * (low - steps)).min(-1, keepdims=True)
    end = (each + bend * (high - steps)).max(-1, keepdims=True)
    moved = steps
    for _ in range(_HALVINGS):
        middle = (begin + end) / 2
        moved = np.clip(steps + (middle - each) / bend, low, high)
        more = moved.sum(-1, keepdims=True) < case.quota
        begin, end = np.where(more, middle, begin), np.where(more, end, middle)
    return moved
