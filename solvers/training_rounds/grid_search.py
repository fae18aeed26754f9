"""The best point of the grid: bounds of all points, and the cost of those that may be best.

A point (m, H, E) costs R (w_T x + E U), where x is the mean of seconds that all cells lose in a
round, whatever their sizes, and U the least mean cost of an edge round without these. U depends on
E only where cells lose different times of global rounds, or the end has a limit; points with the
same U share it. U is nondecreasing in H and nonincreasing in E, in m and in the limit, which
carries bounds from one to many. The point with the
lowest bound is refined, until no bound is below the best cost by more than the gap.

U is that of clients whose fixed bits and cycles are those of one number of units of their cell.
Where they are not, the smallest such number gives the bounds; costs are true, of all sizes if these
are few, or else of those that no move of units between two cells improves.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray
from solvers.joint.weighted import rounded
from solvers.training_rounds.grid_problem import GridProblem, proportion
from solvers.training_rounds.sizes_program import Cut, SizesAnswer, SizesCase, solve_program
from solvers.training_rounds.sizes_tree import SizesTree
from solvers.training_rounds.spend import Phases, spend
from solvers.training_rounds.units import Model, Units

GAP = 3e-5
"""Relative gap at which the search ends."""
_ROUGH = 1e-3
"""That of points that cannot be best, but for rounding of sizes."""
_MAX_TURNS = 40
"""Largest number of programs of a point."""
_HALVINGS = 60
MANY = 8
"""Cells up to which HiGHS solves every integer program, as often as it takes."""
_FEW = 4_000
"""Phases of cells of all sizes, points and draws up to which costs are enumerated."""
_BLOCK = 2_000
"""Phases of cells that are solved at once."""
_ACCURATE = 1e-7
"""Relative accuracy of the costs of phases."""


class FoundPoint(NamedTuple):
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


class GridSearch:
    """Bounds and costs of all points of a grid.

    Args:
        problem: the arguments, of which some m has feasible sizes.
    """

    def __init__(self, problem: GridProblem) -> None:
        self.problem = problem
        self.fixed, self.exact = proportion(problem.cells, problem.shape[1])
        edges = problem.edge_rounds[:, None]
        extra, start = problem.extra.min(-1), problem.start.min(-1)
        self.shared = extra + edges * start
        """Seconds of a round that no cell can use, whatever its size, [edge rounds, draws]."""
        apart = problem.extra - extra[:, None]
        self.lost = apart / edges[..., None] + (problem.start - start[:, None])
        """What each cell loses besides in an edge round, [edge rounds, draws, cells]."""
        self.growth = problem.extra_each / edges[..., None] + problem.start_each
        """The same per step of its size."""
        with np.errstate(invalid="ignore"):
            deadline = problem.max_seconds / problem.rounds[..., None] - self.shared
        self.latest = deadline / problem.edge_rounds[:, None]
        """Latest ends of a local phase, [largest, local steps, edge rounds, draws]."""
        units = Units(problem)
        self.tau = units.soonest
        """Seconds that a unit takes at least, [local steps, draws, cells]."""
        self.possible = problem.sizes.feasible()[:, None, None] & np.isfinite(problem.rounds)
        """Points that reach the target, and have sizes if they may take any time."""
        self.sizes = None if self.exact else self._few_sizes()
        """All sizes to try, [sizes, cells]; None where the search is by bounds."""
        self.alive, self.high = self._reachable()
        self.units = units
        self.turns = np.zeros(problem.rounds.shape, dtype=np.int64)
        shape = problem.rounds.shape
        alone = not (apart.any() or problem.extra_each.any()) and problem.max_seconds == np.inf
        key = np.arange(problem.rounds.size).reshape(shape)
        self.key = np.broadcast_to(key[:, :, :1], shape) if alone else key
        """Number of the first point with the same U."""
        self.shared_phase = alone
        self.lower, self.upper = np.zeros(shape), np.full(shape, np.nan)
        self.stage = np.zeros(shape, dtype=np.int64)
        """0: bounded, 1: solved in fractions, 2: solved."""
        self.steps: dict[int, FloatArray] = {}
        self.branched: set[int] = set()
        """Keys of points of which a tree of sizes has been searched."""
        self.stalled: set[int] = set()
        """Keys of points whose last integer program raised no bound."""
        self.messages: list[str] = []
        sizes = problem.quota / problem.shape[1]
        self.near_steps = np.full(problem.shape[1], sizes)
        """Sizes and ends of the last design, near which tangents matter most."""
        self.near_ends = 2 * (self.tau[len(self.tau) // 2] * (sizes + self.fixed)).max(-1)

    def _reachable(self) -> tuple[BoolArray, FloatArray]:
        """Points with feasible sizes, and the largest sizes [..., cells] that end in time."""
        problem = self.problem
        shape, number = problem.rounds.shape, problem.shape[1]
        high = np.broadcast_to(problem.high[:, None, None], (*shape, number))
        low = np.broadcast_to(problem.low[:, None, None], (*shape, number))
        if problem.max_seconds < np.inf and self.sizes is None:
            high = np.minimum(high, self.largest(self.latest))
        good = self.possible & (low <= high).all(-1) & (high.sum(-1) >= problem.quota)
        return good, high

    def largest(self, latest: FloatArray) -> FloatArray:
        """Largest sizes [largest, local steps, edge rounds, cells] that end by ``latest``."""
        tau = self.tau[:, None]
        window = latest[..., None] * (1 + 1e-14) - self.lost - tau * self.fixed
        per_step = tau + self.growth
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = window / per_step
        steps = np.where(per_step > 0, steps, np.where(window >= 0, np.inf, -1.0)).min(-2)
        return np.asarray(np.floor(steps + 1e-9))

    def cost(self, phase: FloatArray) -> FloatArray:
        """Cost of the training, by that of an edge round, [largest, local steps, edge rounds]."""
        problem = self.problem
        round_ = problem.weights[0] * self.shared.mean(-1) + problem.edge_rounds * phase
        with np.errstate(invalid="ignore"):
            costs = problem.rounds * round_
        return np.where(self.alive, costs, np.inf)

    @cached_property
    def model(self) -> Model:
        """Tangents of the energies."""
        return Model(self.units, self.problem.weights[1] > 0)

    def run(self, within: float) -> FoundPoint | str:
        """Refine points until the gap is closed, or why that fails.

        Args:
            within: points whose bounds exceed the best cost by up to this fraction are solved too.
        """
        if self.sizes is not None:
            return self._enumerated(self.sizes)
        self.lower = np.maximum(self.lower, self._soonest())
        while True:
            self._carry()
            lower, upper = self.cost(self.lower), self.cost(self.upper)
            best = np.nanmin(upper) if np.isfinite(upper).any() else np.inf
            open_ = np.where(self.stage < 2, lower, np.inf)
            place = np.unravel_index(int(open_.argmin()), open_.shape)
            if not (open_[place] < best * (1 - GAP) or open_[place] < best * (1 + within)):
                break
            if self.problem.fixed and not self.problem.weights[1]:
                self._known()
            else:
                self._refine(tuple(int(i) for i in place), best)
        text = "; ".join(dict.fromkeys(self.messages))
        if best == np.inf:
            return text
        place = np.unravel_index(int(np.nanargmin(upper)), upper.shape)
        point = (int(place[0]), int(place[1]), int(place[2]))
        steps = self.steps.get(int(self.key[point]), np.ones(self.problem.shape[1]))
        return FoundPoint(point, steps, upper, np.minimum(lower, np.fmin(upper, np.inf)), text)

    def _few_sizes(self) -> FloatArray | None:
        """All sizes in steps [sizes, cells] of all points; None if there are too many."""
        problem, points = self.problem, int(np.count_nonzero(self.possible))
        some = self.possible.any((1, 2))
        low, high = problem.low[some].min(0), problem.high[some].max(0)
        most = _FEW // (points * problem.shape[0] * problem.shape[1])
        return all_sizes(low, high, problem.quota, most)

    def _enumerated(self, sizes: FloatArray) -> FoundPoint | str:
        """The best of all ``sizes`` [sizes, cells] at all points, or why there is none."""
        problem = self.problem
        steps, least = np.zeros((*self.alive.shape, sizes.shape[1])), np.inf
        late = ""
        for m, h, e in np.argwhere(self.alive).tolist():
            inside = sizes[((sizes >= problem.low[m]) & (sizes <= problem.high[m])).all(-1)]
            costs, seconds = self._true_costs((m, h, e), inside)
            self.upper[m, h, e] = costs.min(initial=np.inf)
            if self.upper[m, h, e] < np.inf:
                steps[m, h, e] = inside[costs.argmin()]
            elif seconds.min(initial=np.inf) < least:
                least = float(seconds.min())
                late = problem.too_late(least, h, e)
        self.alive &= self.upper < np.inf
        costs = self.cost(self.upper)
        m, h, e = (int(i) for i in np.unravel_index(int(costs.argmin()), costs.shape))
        point = m, h, e
        if not self.alive[point]:
            return late
        return FoundPoint(point, steps[point], costs, costs * (1 - _ACCURATE), "")

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
        tau = self.tau[:, None]
        per_step, lost = tau + self.growth, tau * self.fixed + self.lost
        begin = (per_step * low + lost).max(-1)
        if problem.fixed:
            return np.asarray(second * begin.mean(-1))
        end = (per_step * high + lost).max(-1)
        for _ in range(_HALVINGS):
            middle = (begin + end) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = (middle[..., None] - lost) / per_step
            steps = np.where(per_step > 0, steps, np.inf)
            few = np.clip(steps, low, high).sum(-1) < problem.quota
            begin, end = np.where(few, middle, begin), np.where(few, end, middle)
            if (end - begin <= 1e-9 * end).all():
                break
        return np.asarray(second * begin.mean(-1))

    def _known(self) -> None:
        """Phases of fixed sizes at full power and speed: their bounds are their costs."""
        self.upper = np.where(self.alive, self.lower, np.nan)
        self.stage[:] = 2

    def _learn(self, key: int, lower: float, upper: float, stage: int) -> None:
        same = self.key == key
        self.lower[same] = np.fmax(np.maximum(self.lower[same], 0.0), lower)
        self.upper[same] = np.fmin(self.upper[same], upper)
        self.stage[same] = stage

    def _refine(self, point: tuple[int, ...], best: float) -> None:
        """Solve the point in fractions, or with whole sizes if that has been done.

        Points that cost more than the best need only a rough answer, with rounded sizes.
        """
        rough = bool(self.cost(self.lower)[point] >= best)
        gap = _ROUGH if rough else GAP
        m, h, e = point
        problem, key = self.problem, int(self.key[point])
        if self.shared_phase:
            e = 0
        whole = bool(self.stage[point] == 1)
        case = SizesCase(
            h, self.fixed, problem.low[m], self.high[m, h, e], problem.quota, self.lost[e],
            self.growth[e], self.latest[m, h, e], problem.weights,
        )  # fmt: skip
        tree = whole and key not in self.branched and self._branches(case)
        stalled = key in self.stalled
        if tree:
            self.branched.add(key)
            answer: SizesAnswer | str = SizesTree(
                self.units, case, self.near_steps, self.near_ends
            ).search(GAP / 6)
        else:
            answer = self._program(case, whole, stalled)
        if isinstance(answer, str):
            self.messages.append(answer)
            self._learn(key, 0.0, np.inf, 2)
            return
        before, upper = float(self.lower[point]), float(np.fmin(self.upper[point], np.inf))
        if answer.cut is None:
            self._learn(key, min(answer.bound, upper), np.inf, 1)
        else:
            self.lower = np.maximum(self.lower, self._everywhere(answer.cut))
        lower = float(self.lower[point])
        cost = self._tried(case, answer.steps, answer.ends, not whole)
        self.turns[self.key == key] += 1
        done, last = cost - lower <= gap / 3 * cost, bool(self.turns[point] >= _MAX_TURNS)
        if not answer.ended and len(case.low) > MANY:
            self.messages.append("an integer program of HiGHS reached its time limit")
            done = True
        done |= not whole and lower - before <= gap / 30 * lower
        if whole and not tree and lower <= before and cost >= upper:
            self.stalled.add(key)
            last |= stalled
        if whole and last and not (done or rough):
            self.messages.append("integer programs of HiGHS left a gap")
        done |= last
        steps = answer.steps
        if not whole:
            steps = rounded(steps, case.low, case.high, case.quota)
            cost = self._tried(case, steps, answer.ends, False) if done else np.inf
        if not self.exact and cost < np.inf:
            steps, cost = self._improved((m, h, e), case, steps)
        if cost < upper:
            upper, self.steps[key] = cost, steps
        closed = upper < np.inf and upper - lower <= gap * upper
        stage = (
            2
            if closed or (done and (whole or rough or not self.exact))
            else 1
            if whole or done
            else 0
        )
        self._learn(key, 0.0, upper, stage)

    def _true_costs(
        self, point: tuple[int, int, int], sizes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Costs of local phases with ``sizes`` [sizes, cells], inf for those that end too late.

        Also the seconds of a training whose rounds are as long as that of the slowest draw.
        """
        problem, (second, joule) = self.problem, self.problem.weights
        costs, seconds = np.zeros((2, len(sizes)))
        edge_rounds = problem.edge_rounds[point[2]]
        number = max(_BLOCK // (problem.shape[0] * problem.shape[1]), 1)
        for begin in range(0, len(sizes), number):
            block = slice(begin, begin + number)
            phases = self.phases(point, sizes[block])
            means = (second * phases.ends + joule * phases.joules).mean(-1)
            costs[block] = np.where(phases.late.any(-1), np.inf, means)
            seconds[block] = (edge_rounds * phases.ends + self.shared[point[2]]).max(-1)
        return costs, problem.rounds[point] * seconds

    def _improved(
        self, point: tuple[int, int, int], case: SizesCase, steps: FloatArray
    ) -> tuple[FloatArray, float]:
        """Sizes, and their cost, that no move of units between two cells improves."""
        cost = float(self._true_costs(point, steps[None])[0][0])
        giver, taker = np.nonzero(~np.eye(len(steps), dtype=bool))
        moves = np.zeros((len(giver), len(steps)))
        places = np.arange(len(giver))
        moves[places, giver], moves[places, taker] = -1.0, 1.0
        units = 2.0 ** np.arange(int(max(case.quota, 1)).bit_length())
        moves = (units[:, None, None] * moves).reshape(-1, len(steps))
        while True:
            sizes = steps + moves
            sizes = sizes[((sizes >= case.low) & (sizes <= case.high)).all(-1)]
            costs = self._true_costs(point, sizes)[0]
            if not costs.min(initial=np.inf) < cost * (1 - _ACCURATE):
                return steps, cost
            cost, steps = float(costs.min()), sizes[costs.argmin()]

    def _program(self, case: SizesCase, whole: bool, all_tangents: bool) -> SizesAnswer | str:
        """Solve the program with the tangents near the last design, or with all of them.

        Those near one design may lack those that exclude another one, and programs would alternate.
        """
        size = np.maximum(self.near_steps + case.fixed, 1e-9)
        window = self.near_ends[:, None] - case.lost_with(self.near_steps)
        tau = np.maximum(window / size, self.tau[case.local])
        lines = self.model.relevant(case.local, tau)
        if all_tangents:
            lines = np.ones_like(lines)
        answer = solve_program(self.model, case, lines, self._scales(case), whole)
        if not isinstance(answer, str):
            self.near_steps, self.near_ends = answer.steps, answer.ends
        return answer

    def _branches(self, case: SizesCase) -> bool:
        """Whether the tree of sizes may replace the integer program."""
        free = bool(np.isinf(case.latest).all()) and min(case.weights) > 0
        return free and len(case.low) > MANY and self.exact and not self.units.full_power

    def _everywhere(self, cut: Cut) -> FloatArray:
        """What a cut says about U at all points, [largest, local steps, edge rounds]."""
        problem = self.problem
        steps = problem.local_steps[:, None, None]
        slopes = (cut.per_time * self.tau + cut.base + cut.per_step * steps).sum(1)  # per size
        ends = 0.0 if problem.weights[0] else self.latest
        with np.errstate(invalid="ignore"):
            ends = np.where(cut.rest < 0, self.latest, ends) * cut.rest
        bound = np.where(cut.rest == 0, 0.0, ends).sum(-1)
        bound = bound + (self.lost * (cut.per_time - cut.per_second)).sum((1, 2))
        bound = bound + (slopes @ self.fixed)[:, None]
        slopes = slopes[:, None] + (self.growth * (cut.per_time - cut.per_second)).sum(1)
        order = slopes.argsort(-1)
        slopes = np.take_along_axis(slopes, order, -1)
        order = np.broadcast_to(order, self.high.shape)
        low = np.broadcast_to(problem.low[:, None, None], self.high.shape)
        low, high = (np.take_along_axis(x, order, -1) for x in (low, self.high))
        room = high - low
        missing = problem.quota - low.sum(-1, keepdims=True) - (room.cumsum(-1) - room)
        sizes = low + np.clip(missing, 0, np.maximum(room, 0))
        bounds = bound + (slopes * sizes).sum(-1)
        return np.where(self.alive & np.isfinite(bounds), bounds * (1 - 1e-12), 0.0)

    def _scales(self, case: SizesCase) -> tuple[float, float]:
        """Typical seconds and cost of a phase."""
        sizes = case.quota / len(case.low) + case.fixed
        soonest = self.tau[case.local]
        lost = case.lost_with(np.full(len(case.low), case.quota / len(case.low)))
        seconds = float((soonest * sizes + lost).max()) or 1.0
        second, joule = case.weights
        if not joule:
            return seconds, second * seconds
        ends = np.where(np.isfinite(case.latest), case.latest, 2 * seconds)
        tau = np.maximum((ends[:, None] - lost) / np.maximum(sizes, 1e-9), soonest)
        base, slope = self.model.lines(case.local)
        energy = (sizes * np.maximum((base + slope * tau).max(0), 0.0)).sum() / len(case.latest)
        cost = second * float(ends.mean()) + joule * float(energy)
        return seconds, cost if np.isfinite(cost) and cost > 0 else 1.0

    def _tried(self, case: SizesCase, steps: FloatArray, ends: FloatArray, near: bool) -> float:
        """Cost of sizes, whole or not, with ends no sooner than possible; adds tangents there."""
        size, lost = steps + case.fixed, case.lost_with(steps)
        soonest = self.tau[case.local]
        needed = (size * soonest + lost).max(-1)
        ends = np.maximum(ends, needed)
        if (needed > case.latest * (1 + 1e-12)).any():
            return np.inf
        if not case.weights[0]:
            ends = np.maximum(case.latest, needed)
        cost = case.weights[0] * float(ends.mean())
        if case.weights[1]:
            window = ends[:, None] - lost
            safe = np.where(size > 0, size, 1.0)
            energy = self.model.refine(np.maximum(window / safe, soonest), case.local, near)
            joules = np.where(size > 0, size * energy, 0.0).sum(-1)
            cost += case.weights[1] * float(joules.mean())
        return cost

    def phases(self, point: tuple[int, int, int], sizes: FloatArray) -> Phases:
        """The clients' plans with ``sizes`` in steps [cases, cells] at a point."""
        m, h, e = point
        problem = self.problem
        cells = problem.at(int(problem.local_steps[h]))
        cases, draws = len(sizes), problem.shape[0]
        lost = self.lost[e] + self.growth[e] * sizes[:, None]
        return spend(
            cells.rows(np.tile(np.arange(len(cells.band)), cases)),
            np.repeat(sizes[:, None], draws, 1),
            lost, np.repeat(self.latest[None, m, h, e], cases, 0), problem.weights,
            problem.bands == "equal",
        )  # fmt: skip


def all_sizes(low: FloatArray, high: FloatArray, quota: int, most: int) -> FloatArray | None:
    """All whole sizes [sizes, cells] from ``low`` to ``high`` with sum ``quota``.

    None if there are more than ``most``.
    """
    sizes = np.zeros((1, 0))
    for cell in range(len(low)):
        left = quota - sizes.sum(-1)
        first = np.maximum(low[cell], left - high[cell + 1 :].sum())
        last = np.minimum(high[cell], left - low[cell + 1 :].sum())
        count = np.maximum(last - first + 1, 0).astype(np.int64)
        if count.sum() > most:
            return None
        rows = np.repeat(np.arange(len(sizes)), count)
        place = np.arange(len(rows)) - (count.cumsum() - count)[rows]
        sizes = np.column_stack([sizes[rows], first[rows] + place])
    return sizes
