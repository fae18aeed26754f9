"""The best point of the grid: bounds of all points, and the cost of those that may be best.

A point (m, H, E) costs R (w_T x + E U), where x is the mean of seconds that all cells lose in a
round and U the least mean cost of a local phase. U depends on E only where cells lose different
times or the end has a limit; points with the same U share it. U is nondecreasing in H and
nonincreasing in m and in the limit, which carries bounds from one to many. The point with the
lowest bound is refined, until no bound is below the best cost by more than the gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray
from solvers.bands.least_time import least_time
from solvers.joint.energy_cells import EnergyCells
from solvers.joint.weighted import rounded
from solvers.training_rounds.problem import Problem, proportion
from solvers.training_rounds.program import Case, solve_program
from solvers.training_rounds.spend import Phases, spend
from solvers.training_rounds.units import FullPower, Model, Units, units_of

GAP = 3e-5
"""Relative gap at which the search ends."""
_MAX_TURNS = 40
_TOGETHER = 64
"""Cases with fixed sizes that are solved together."""
_HALVINGS = 60


class Found(NamedTuple):
    """The best design and what is known about the grid.

    Args:
        point: its places in the axes of R.
        steps: sizes in steps, [cells].
        costs, bounds: of all points [largest, local steps, edge rounds]; costs are NaN where no
            design was found before the point was left out, inf where there is none.
        message: why the search has ended early, if it has.
    """

    point: tuple[int, int, int]
    steps: FloatArray
    costs: FloatArray
    bounds: FloatArray
    message: str


class Search:
    """Bounds and costs of all points of a grid.

    Args:
        problem: the arguments, of which some m has feasible sizes.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.fixed, self.exact = proportion(problem.cells, problem.shape[1])
        self.shared = problem.extra.min(-1)
        """Seconds of a round that no cell can use, [draws]."""
        apart = problem.extra - self.shared[:, None]
        self.lost = apart / problem.edge_rounds[:, None, None]
        """What each cell loses besides in a local phase, [edge rounds, draws, cells]."""
        with np.errstate(invalid="ignore"):
            deadline = problem.max_seconds / problem.rounds[..., None] - self.shared
        self.latest = deadline / problem.edge_rounds[:, None]
        """Latest ends of a local phase, [largest, local steps, edge rounds, draws]."""
        self.tau = self._shortest()
        """Seconds that a unit takes at least, [local steps, draws, cells]."""
        self.alive, self.high = self._reachable()
        self._models: dict[int, Model] = {}
        shape = problem.rounds.shape
        alone = not apart.any() and problem.max_seconds == np.inf
        key = np.arange(problem.rounds.size).reshape(shape)
        self.key = np.broadcast_to(key[:, :, :1], shape) if alone else key
        """Number of the first point with the same U."""
        self.shared_phase = alone
        self.lower, self.upper = np.zeros(shape), np.full(shape, np.nan)
        self.stage = np.zeros(shape, dtype=np.int64)
        """0: bounded, 1: solved in fractions, 2: solved."""
        self.steps: dict[int, FloatArray] = {}
        self.scale = 0.0
        self.messages: list[str] = []

    def _shortest(self) -> FloatArray:
        problem = self.problem
        parts = [problem.at(int(h)) for h in problem.local_steps]
        none = np.zeros(problem.cells.bits.shape)
        able = ~problem.cells.unable(np.ones(len(problem.cells.band)))[:, None]
        stacked = EnergyCells(
            *(
                np.concatenate([np.where(able, getattr(p, name), 0.0) for p in parts])
                if name in ("bits", "cycles")
                else np.tile(none, (len(parts), 1))
                if name in ("more_bits", "more_cycles")
                else np.concatenate([getattr(p, name) for p in parts])
                for name in EnergyCells._fields
            )
        )
        if problem.bands == "equal":
            count = np.count_nonzero(problem.cells.bits + problem.cells.more_bits > 0, axis=-1)
            tau = FullPower(stacked, np.tile(count, len(parts))).soonest[1]
        else:
            tau = np.zeros(len(stacked.band))
            busy = np.flatnonzero((stacked.bits + stacked.cycles > 0).any(-1))
            ones = np.ones(len(busy))
            tau[busy] = least_time(
                stacked.rows(busy).rounds(ones, 1.0).cells(np.arange(len(busy)))
            )[1]
        return np.asarray(tau.reshape(len(parts), *problem.shape))

    def _reachable(self) -> tuple[BoolArray, FloatArray]:
        """Points with feasible sizes, and the largest sizes [..., cells] that end in time."""
        problem = self.problem
        shape, number = problem.rounds.shape, problem.shape[1]
        high = np.broadcast_to(problem.high[:, None, None], (*shape, number))
        low = np.broadcast_to(problem.low[:, None, None], (*shape, number))
        if problem.max_seconds < np.inf:
            high = np.minimum(high, self.largest(self.latest))
        good = problem.sizes.feasible()[:, None, None] & np.isfinite(problem.rounds)
        good = good & (low <= high).all(-1) & (high.sum(-1) >= problem.quota)
        return good, high

    def largest(self, latest: FloatArray) -> FloatArray:
        """Largest sizes [largest, local steps, edge rounds, cells] that end by ``latest``."""
        window = latest[..., None] * (1 + 1e-14) - self.lost
        tau = self.tau[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = window / tau
        steps = np.where(tau > 0, steps, np.where(window >= 0, np.inf, -1.0)).min(-2)
        return np.asarray(np.floor(steps - self.fixed + 1e-9))

    def model(self, local: int) -> Model:
        """Tangents at a place of the local steps."""
        if local not in self._models:
            problem = self.problem
            cells = problem.at(int(problem.local_steps[local]))
            units: Units = units_of(cells, problem.bands)
            self._models[local] = Model(units, problem.shape, problem.weights[1] > 0)
        return self._models[local]

    def cost(self, phase: FloatArray) -> FloatArray:
        """Cost of the training, by that of the local phase, [largest, local steps, edge rounds]."""
        problem = self.problem
        round_ = problem.weights[0] * self.shared.mean() + problem.edge_rounds * phase
        with np.errstate(invalid="ignore"):
            found = problem.rounds * round_
        return np.where(self.alive, found, np.inf)

    def run(self) -> Found:
        """Refine points until the gap is closed."""
        self.lower = np.maximum(self.lower, self._soonest())
        if not self.problem.weights[1]:
            self.scale = float(self.lower[self.alive].min())
        while True:
            self._carry()
            lower, upper = self.cost(self.lower), self.cost(self.upper)
            best = np.nanmin(upper) if np.isfinite(upper).any() else np.inf
            open_ = np.where(self.stage < 2, lower, np.inf)
            place = np.unravel_index(int(open_.argmin()), open_.shape)
            if not open_[place] < best * (1 - GAP):
                break
            if self.problem.fixed:
                self._spend_many(open_, best)
            else:
                self._refine(tuple(int(i) for i in place))
        place = np.unravel_index(int(np.nanargmin(upper)), upper.shape)
        point = (int(place[0]), int(place[1]), int(place[2]))
        steps = self.steps.get(int(self.key[point]), np.ones(self.problem.shape[1]))
        text = "; ".join(dict.fromkeys(self.messages))
        return Found(point, steps, upper, np.minimum(lower, np.fmin(upper, np.inf)), text)

    def _carry(self) -> None:
        """Carry bounds to points whose phases cannot cost less."""
        if self.problem.max_seconds == np.inf:
            lower = np.maximum.accumulate(self.lower, axis=1)  # more local steps
            lower = np.maximum.accumulate(lower[:, :, ::-1], axis=2)[:, :, ::-1]  # larger losses
            self.lower = np.maximum.accumulate(lower[::-1], axis=0)[::-1]  # smaller masks

    def _soonest(self) -> FloatArray:
        """w_T x the mean over draws of the shortest phases, each with sizes of its own."""
        problem = self.problem
        second = problem.weights[0]
        if not second:
            return np.zeros(problem.rounds.shape)
        low, high = (x[:, None, None, None] for x in (problem.low, problem.high))
        tau, fixed = self.tau[:, None], self.fixed
        begin = (tau * (low + fixed) + self.lost).max(-1)
        if problem.fixed:
            return np.asarray(second * begin.mean(-1))
        end = (tau * (high + fixed) + self.lost).max(-1)
        for _ in range(_HALVINGS):
            middle = (begin + end) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = (middle[..., None] - self.lost) / tau - fixed
            steps = np.where(tau > 0, steps, np.inf)
            few = np.clip(steps, low, high).sum(-1) < problem.quota
            begin, end = np.where(few, middle, begin), np.where(few, end, middle)
            if (end - begin <= 1e-9 * end).all():
                break
        return np.asarray(second * begin.mean(-1))

    def _spend_many(self, open_: FloatArray, best: float) -> None:
        """Solve phases of fixed sizes at the points with the lowest bounds."""
        problem = self.problem
        draws, number = problem.shape
        order = np.argsort(open_, axis=None, kind="stable")
        order = order[open_.ravel()[order] < best * (1 - GAP)]
        keys = list(dict.fromkeys(self.key.ravel()[order].tolist()))[:_TOGETHER]
        if not problem.weights[1]:
            keys = list(dict.fromkeys(self.key.ravel().tolist()))
        m, h, e = np.unravel_index(np.array(keys), problem.rounds.shape)
        if problem.weights[1]:
            parts = [problem.at(int(problem.local_steps[i])) for i in h]
            cells = EnergyCells(*map(np.concatenate, zip(*parts, strict=True)))
            ones = np.ones((len(keys), draws, number))
            found = spend(
                cells, ones, self.lost[e], self.latest[m, h, e], problem.weights,
                problem.bands == "equal",
            )  # fmt: skip
            cost = problem.weights[0] * found.ends + problem.weights[1] * found.joules
            cost, bound = np.where(found.late, np.inf, cost).mean(-1), found.bound.mean(-1)
        else:
            cost = bound = self.lower[m, h, e]
        self.steps |= {key: np.ones(number) for key in keys}
        for key, one, least in zip(keys, cost, bound, strict=True):
            self._learn(key, float(least), float(one), 2)

    def _learn(self, key: int, lower: float, upper: float, stage: int) -> None:
        same = self.key == key
        self.lower[same] = np.fmax(np.maximum(self.lower[same], 0.0), lower)
        self.upper[same] = np.fmin(self.upper[same], upper)
        self.stage[same] = stage

    def _refine(self, point: tuple[int, ...]) -> None:
        """Solve the point in fractions, or with whole sizes if that has been done."""
        m, h, e = point
        problem, key = self.problem, int(self.key[point])
        if self.shared_phase:
            e = 0
        model, whole = self.model(h), self.stage[point] == 1
        case = Case(
            self.fixed, problem.low[m], self.high[m, h, e], problem.quota, self.lost[e],
            self.latest[m, h, e], problem.weights,
        )  # fmt: skip
        lower, upper = float(self.lower[point]), float(np.fmin(self.upper[point], np.inf))
        scales = self._scales(model, case)
        previous = 0.0
        for _ in range(_MAX_TURNS):
            answer = solve_program(model, case, scales, bool(whole))
            if isinstance(answer, str):
                self.messages.append(answer)
                break
            lower = max(lower, min(answer.bound, upper))
            steps = rounded(answer.steps, case.low, case.high, case.quota)
            cost = self._tried(model, case, answer.steps, answer.ends)
            reached = cost if whole else self._tried(model, case, steps, answer.ends)
            if reached < upper:
                upper, self.steps[key] = reached, steps
            done = not problem.weights[1] or cost - lower <= GAP / 3 * cost
            if done or (not whole and lower - previous <= GAP / 30 * lower):
                break
            previous = lower
        closed = upper - lower <= GAP * upper
        self._learn(key, lower, upper, 2 if whole or closed else 1)

    def _scales(self, model: Model, case: Case) -> tuple[float, float]:
        """Typical seconds and cost of a phase."""
        sizes = case.quota / len(case.low) + case.fixed
        seconds = float((model.soonest * sizes + case.lost).max()) or 1.0
        second, joule = case.weights
        if not joule:
            return seconds, second * seconds
        ends = np.where(np.isfinite(case.latest), case.latest, seconds)
        tau = np.maximum((ends[:, None] - case.lost) / np.maximum(sizes, 1e-9), model.soonest)
        energy = (sizes * model.add(tau[None])[0]).sum() / model.shape[0]
        cost = second * seconds + joule * energy
        return seconds, float(cost) if np.isfinite(cost) and cost > 0 else 1.0

    def _tried(self, model: Model, case: Case, steps: FloatArray, ends: FloatArray) -> float:
        """Cost of sizes, whole or not, with ends no sooner than possible; adds tangents there."""
        size = steps + case.fixed
        needed = (size * model.soonest + case.lost).max(-1)
        ends = np.maximum(ends, needed)
        if (needed > case.latest * (1 + 1e-12)).any():
            return np.inf
        if not case.weights[0]:
            ends = np.maximum(case.latest, needed)
        cost = case.weights[0] * float(ends.mean())
        if case.weights[1]:
            window = ends[:, None] - case.lost
            safe = np.where(size > 0, size, 1.0)
            energy = model.refine(np.maximum(window / safe, model.soonest))
            joules = np.where(size > 0, size * energy, 0.0).sum(-1)
            cost += case.weights[1] * float(joules.mean())
        return cost

    def phases(self, point: tuple[int, int, int], steps: FloatArray) -> Phases:
        """The clients' plans with sizes in steps [cells] at a point."""
        m, h, e = point
        problem = self.problem
        cells = problem.at(int(problem.local_steps[h]))
        sizes = np.tile(steps, (1, problem.shape[0], 1))
        return spend(
            cells, sizes, self.lost[None, e], self.latest[None, m, h, e], problem.weights,
            problem.bands == "equal",
        )  # fmt: skip
