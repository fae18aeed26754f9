"""Closed loop: correct the learning curve by what a run shows, and redesign its next rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.codesign.curves import Pilot, RoundsCurve
from wirelessfl.codesign.curves.curve import Fitted
from wirelessfl.codesign.curves.fit import FITS
from wirelessfl.codesign.curves.observed import NAMES, Observed
from wirelessfl.codesign.curves.pilot import SCORE
from wirelessfl.codesign.round_costs import RoundCosts
from wirelessfl.divergence import counted
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.redesign import Decision, Redesign, RoundSettings, Row, SoFar
from wirelessfl.wording import shown

Learn = Literal["local", "common", "none"]
LEAST_ERROR = 0.15
"""Least standard deviation of log rounds around the curve: runs with other seeds differ by it."""
EVALUATION = 0.5
"""Standard deviation of log rounds that one evaluation shows."""
LARGEST_RATIO = 4.0
"""Largest ratio of the rounds of a part of a run to those of the curve, either way."""
LEAST_PROGRESS = 0.01
"""What a part of a run has gained at least, as a share of the accuracy that it lacks."""
CAUTION = 0.5
"""Standard deviations of the error of a saving by which it must exceed ``least_gain``."""
SECONDS = (1.0, 0.0)
DRAWS, FEW = 16, 8
"""Numbers of channel draws over which the cost of a round is averaged: of rounds with equal
submodels, and of others, each of which must be planned."""
CLIENTS, LARGEST = NAMES.index("clients"), NAMES.index("largest")


class Segment(NamedTuple):
    """Consecutive rounds of a run with the same settings.

    Args:
        settings: H, E, K, m and sigma^2, [5].
        rounds: global round of each row, [rows]; the first is that of the row before the segment.
        scores: validation accuracies, [rows].
        reached: best validation accuracy before the segment.
    """

    settings: FloatArray
    rounds: FloatArray
    scores: FloatArray
    reached: float


class Grid(NamedTuple):
    """Numbers to choose from.

    Args:
        local_steps, edge_rounds: H and E, increasing.
    """

    local_steps: list[int]
    edge_rounds: list[int]


@dataclass(frozen=True)
class ClosedLoop(Redesign):
    """Every R rounds, choose H, E and the uplink's allocation that reach the target soonest.

    The state of a run is its best validation accuracy so far, a. With settings s it still needs
    R_target(s) (1 - R_a / R_target) rounds, where R is the fitted learning curve and the share of
    rounds that remains is that of the current settings: differences of two fits predict no better
    which settings are the soonest, and vary more. The settings of the next rounds minimise these
    rounds times the mean cost of a round over channels that the run does not have, by enumeration.
    Below the lowest fitted accuracy, R_a grows linearly from the accuracy of the initial model.

    What the run shows corrects the rounds of the curve by a factor, which ``learn`` chooses. Each
    part of the run with the same H and E has a ratio of its rounds to those that the curve gives
    for the accuracy that it gained. The logarithm of the factor is a Gaussian process with these
    ratios as noisy observations:

    - ``local``: half of its variance is common to all settings, since runs differ from each other;
      half is that of the curve's shape, and falls as exp(-d^2/2), d being the distance in log H
      and log E. The variance is that of left-out pilots around the curve.
    - ``common``: all of it is common. Predictions change, but no comparison of settings.
    - ``none``: the factor is 1.

    Settings change if this saves more than half a standard deviation of the ratio of the two
    factors, and more than ``least_gain``.

    A fit to pilots and the run together is no substitute: what it learns at low accuracies does
    not reach the target's coefficients.

    >>> import wirelessfl
    >>> rounds = range(1, 40)
    >>> pilots = [
    ...     wirelessfl.Pilot(h, 1, 4, rounds, [1 - 1 / (1 + r * h**0.5 / 9) for r in rounds])
    ...     for h in (1, 4, 16)
    ... ]
    >>> curve = wirelessfl.fit_rounds(pilots, [0.3, 0.5, 0.7], form="power", bootstrap=0)
    >>> loop = wirelessfl.ClosedLoop.of(curve, 0.6, local_steps=[1, 4, 16], every=2)
    >>> settings = wirelessfl.Config.from_flags(
    ...     "fedavg", clients=4, local_steps=1, rounds=4, validation_fraction=0.2, out="loop-run"
    ... )
    >>> result = wirelessfl.run(settings, redesign=loop)
    >>> [row["local_steps"] for row in result.rows]
    [1, 1, 1, 16, 16]

    Args:
        pilots: the runs behind the curve.
        targets: accuracies at which the curve is fitted, increasing.
        form: form of the curve, see ``RoundsCurve.form``.
        error: standard deviation of log rounds of left-out pilots around the curve.
        target: validation accuracy to reach, within ``targets``.
        local_steps: H to choose from.
        edge_rounds: E to choose from.
        uplinks: settings of the uplink to choose from, e.g. ``{"allocation": "optimal"}``.
        objective: w_T and w_E of w_T seconds + w_E joules per client.
        every: R, global rounds between two redesigns.
        learn: how the run corrects the curve.
        least_gain: relative saving of the remaining cost below which settings stay: differences
            within the error of the fit only move the run back and forth.

    Raises:
        ConfigError: a value is out of range.
    """

    pilots: tuple[Pilot, ...]
    targets: tuple[float, ...]
    form: str
    error: float
    target: float
    local_steps: tuple[int, ...]
    edge_rounds: tuple[int, ...] = (1,)
    uplinks: tuple[Mapping[str, Any], ...] = field(default=({},))
    objective: tuple[float, float] = SECONDS
    every: int = 5
    learn: Learn = "local"
    least_gain: float = 0.02

    reads: ClassVar[tuple[str, ...]] = (SCORE,)

    def __post_init__(self) -> None:
        low, high = self.targets[0], self.targets[-1]
        number = isinstance(self.target, int | float) and not isinstance(self.target, bool)
        if not (number and low <= self.target <= high):
            raise ConfigError(
                f"target is {shown(self.target)}, and the curve was fitted from {low:g} to "
                f"{high:g}: choose a target between them, or give it to fit_rounds."
            )
        if self.form not in FITS:
            raise ConfigError(f"form is {shown(self.form)}: choose {', '.join(FITS)}.")
        if self.learn not in get_args(Learn):
            raise ConfigError(f"learn is {shown(self.learn)}: choose {', '.join(get_args(Learn))}.")
        for name in ("local_steps", "edge_rounds"):
            values = getattr(self, name)
            whole = all(isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in values)
            if not (values and whole):
                raise ConfigError(f"{name} is {shown(values)}: give integers >= 1.")
        weights = self.objective
        fine = len(weights) == 2 and all(math.isfinite(w) and w >= 0 for w in weights)
        if not (fine and sum(weights) > 0):
            raise ConfigError(
                f"objective is {shown(weights)}: give (w_T, w_E), both >= 0 and one > 0."
            )
        if not (math.isfinite(self.least_gain) and 0 <= self.least_gain < 1):
            raise ConfigError(f"least_gain is {shown(self.least_gain)}: give a number in [0, 1).")

    @classmethod
    def of(
        cls,
        curve: RoundsCurve,
        target: float,
        *,
        local_steps: Sequence[int],
        edge_rounds: Sequence[int] = (1,),
        uplinks: Sequence[Mapping[str, Any]] = ({},),
        objective: Sequence[float] = SECONDS,
        every: int = 5,
        learn: Learn = "local",
        least_gain: float = 0.02,
    ) -> Self:
        """The closed loop for a fitted curve; see the class for the arguments.

        Args:
            curve: learning curve of the run's algorithm, from ``fit_rounds``.
            target: validation accuracy to reach.
            local_steps, edge_rounds, uplinks: what to choose from.
            objective: w_T and w_E.
            every: R.
            learn, least_gain: see the class.
        """
        return cls(
            pilots=tuple(curve.runs),
            targets=tuple(float(each) for each in curve.targets),
            form=curve.form,
            error=float(curve.errors[curve.form]),
            target=target,
            local_steps=tuple(local_steps),
            edge_rounds=tuple(edge_rounds),
            uplinks=tuple(dict(each) for each in uplinks),
            objective=(float(objective[0]), float(objective[1])),
            every=every,
            learn=learn,
            least_gain=least_gain,
        )

    def stored(self) -> dict[str, Any]:
        """Its arguments, as JSON."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        pilots = [
            asdict(pilot) | {"rounds": pilot.rounds.tolist(), "scores": pilot.scores.tolist()}
            for pilot in self.pilots
        ]
        return found | {"pilots": pilots}

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Self:
        """The closed loop that ``stored`` describes."""
        found: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in stored.items()
        }
        found["pilots"] = tuple(Pilot(**pilot) for pilot in stored["pilots"])
        return cls(**found)

    @cached_property
    def _observed(self) -> Observed:
        """What the pilots say."""
        return Observed.of(self.pilots, np.array(self.targets))

    @cached_property
    def _curve(self) -> Fitted:
        """The curve of the pilots."""
        return FITS[self.form](self._observed, None)

    def decide(self, run: SoFar) -> Decision:
        """The settings with the least remaining cost by the curve, and what it expects of them."""
        initial = counted(run.rows[0], SCORE)
        reached = max(counted(row, SCORE) for row in run.rows)
        now = run.settings
        if reached >= self.target:
            return Decision(run.rounds, now, {"rounds": 0.0, "seconds": 0.0, "joules": 0.0})
        grid = Grid(
            sorted({*self.local_steps, now.local_steps}),
            sorted({*self.edge_rounds, now.edge_rounds} if run.hierarchical else {1}),
        )
        ways = [replace(now, uplink=uplink) for uplink in self.uplinks]
        if all(way.uplink != now.uplink for way in ways):
            ways.append(now)
        costs = [self._costs(run, way, grid) for way in ways]
        seconds, joules = (np.stack([cost[i] for cost in costs]) for i in range(2))
        points = np.stack([self._points(grid, run.participants, cost[2]) for cost in costs])
        stays = (
            next(i for i, way in enumerate(ways) if way.uplink == now.uplink),
            grid.local_steps.index(now.local_steps),
            grid.edge_rounds.index(now.edge_rounds),
        )
        factor, error = self._factor([*self._segments(run)], points, initial, points[stays])
        rounds = factor * self._remaining(points, points[stays], initial, reached)
        score = self._score(rounds, seconds, joules)
        careful = score * np.exp(CAUTION * error)
        best = tuple(int(i) for i in np.unravel_index(int(careful.argmin()), score.shape))
        if not careful[best] < (1 - self.least_gain) * score[stays]:
            best = stays
        expected = {
            "rounds": rounds[best],
            "seconds": rounds[best] * seconds[best],
            "joules": rounds[best] * joules[best],
        }
        return Decision(
            run.rounds,
            replace(
                ways[best[0]],
                local_steps=grid.local_steps[best[1]],
                edge_rounds=grid.edge_rounds[best[2]],
            ),
            {name: float(value) for name, value in expected.items() if math.isfinite(value)},
        )

    def _score(self, rounds: FloatArray, seconds: FloatArray, joules: FloatArray) -> FloatArray:
        """Weighted cost of the remaining rounds; inf where the target is not reached."""
        score = np.zeros(rounds.shape)
        for weight, cost in zip(self.objective, (seconds, joules), strict=True):
            if weight:  # joules may be unknown
                with np.errstate(invalid="ignore"):
                    score = score + weight * rounds * cost
        return np.where(np.isfinite(rounds) & np.isfinite(score), score, np.inf)

    def _costs(
        self, run: SoFar, way: RoundSettings, grid: Grid
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean seconds and joules of a round, and m, over the grid, [H, E] each.

        Args:
            run: the run.
            way: participants and uplink.
            grid: numbers of local steps and edge rounds.
        """
        key = (replace(way, local_steps=1, edge_rounds=1).key, str(grid))
        if key not in run.memo:
            planner = run.planner(way)
            with_joules = self.objective[1] > 0
            try:
                draws = DRAWS if planner.algorithm.fixed_shapes else FEW
                found = RoundCosts(planner, draws).of(
                    planner.links.uplink, grid.local_steps, grid.edge_rounds, joules=with_joules
                )
                run.memo[key] = (*found.means, found.largest)
            except ConfigError:  # some of these rounds cannot be planned
                each = [
                    [
                        run.cost(replace(way, local_steps=steps, edge_rounds=edges))
                        for edges in grid.edge_rounds
                    ]
                    for steps in grid.local_steps
                ]
                run.memo[key] = tuple(
                    np.array([[getattr(cost, name) for cost in row] for row in each])
                    for name in ("seconds", "joules", "largest")
                )
        found_costs: tuple[FloatArray, FloatArray, FloatArray] = run.memo[key]
        return found_costs

    def _points(self, grid: Grid, clients: float, largest: FloatArray) -> FloatArray:
        """The settings of a grid, [H, E, 5]; ``largest`` is m, [H, E]."""
        return np.array(
            [
                [
                    self._point(steps, edges, clients, largest[h, e])
                    for e, edges in enumerate(grid.edge_rounds)
                ]
                for h, steps in enumerate(grid.local_steps)
            ]
        )

    def _point(self, steps: int, edges: int, clients: float, largest: float) -> FloatArray:
        """H, E, K, m and sigma^2 of the curve; K and m only where pilots differ in them, [5]."""
        point: FloatArray = self._observed.points[0].astype(np.float64)
        point[:2] = steps, edges
        for place, value in ((CLIENTS, clients), (LARGEST, largest)):
            if self._observed.varies[place]:
                point[place] = value
        return point

    def _segments(self, run: SoFar) -> Iterator[Segment]:
        """The parts of the run with equal H, E, K and m, of which rows are known."""
        settings = [
            self._point(
                each.settings.local_steps,
                each.settings.edge_rounds,
                _participants(run.rows, each),
                run.cost(each.settings).largest if self._observed.varies[LARGEST] else 1.0,
            )
            for each in run.decisions
        ]
        starts = [each.round for each in run.decisions]
        kept = [i for i in range(len(starts)) if i == 0 or (settings[i] != settings[i - 1]).any()]
        ends = [*(starts[i] for i in kept[1:]), run.rounds]
        for place, end in zip(kept, ends, strict=True):
            start = starts[place]
            rows = [row for row in run.rows if start <= row["round"] <= end]
            if len(rows) < 2:
                continue
            yield Segment(
                settings[place],
                np.array([float(row["round"]) for row in rows]),
                np.array([counted(row, SCORE) for row in rows]),
                max(counted(row, SCORE) for row in run.rows if row["round"] <= start),
            )

    def _factor(
        self,
        segments: Sequence[Segment],
        points: FloatArray,
        initial: float,
        now: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """What the run says about ratios of its rounds to those of the curve.

        Args:
            segments: the parts of the run.
            points: settings, [..., 5].
            initial: accuracy of the initial model.
            now: current settings, [5].

        Returns:
            The expected ratio at the points, [...], and the standard deviation of its logarithm
            minus that at the current settings.
        """
        if self.learn == "none":
            return np.ones(points.shape[:-1]), np.zeros(points.shape[:-1])
        ratios = np.array([self._ratio(segment, initial) for segment in segments])
        known = np.isfinite(ratios)
        seen = np.array([segment.settings for segment in segments]).reshape(-1, now.size)[known]
        evaluations = np.array([len(segment.rounds) - 1 for segment in segments])[known]
        noisy = self._covariance(seen, seen) + np.diag(EVALUATION**2 / evaluations)
        some = self._covariance(points, seen)
        factor = np.exp(some @ np.linalg.solve(noisy, np.log(ratios[known])))
        here = self._covariance(now, now[None])[..., 0]
        apart = 2 * (here - self._covariance(points, now[None])[..., 0])
        moved = some - self._covariance(now, seen)
        told = np.einsum("...i,...i", moved, np.linalg.solve(noisy, moved[..., None])[..., 0])
        return factor, np.sqrt(np.maximum(apart - told, 0.0))

    def _covariance(self, some: FloatArray, others: FloatArray) -> FloatArray:
        """Covariance of log ratios at points [..., 5] and [others, 5], [..., others]."""
        distance = np.log(some[..., None, :2]) - np.log(others[:, :2])
        near = np.exp(-0.5 * (distance**2).sum(-1))
        local = 0.0 if self.learn == "common" else 0.5
        variance = max(self.error, LEAST_ERROR) ** 2
        return np.asarray(variance * (1 - local + local * near))

    def _ratio(self, segment: Segment, initial: float) -> float:
        """Rounds of a part of the run over those of the curve; NaN if the curve has none."""
        missing = max(self.target - segment.reached, 0.0)
        least = segment.reached + LEAST_PROGRESS * missing
        best = min(max(float(segment.scores.max()), least), self.target)
        first, last = (
            float(self._rounds_at(segment.settings, initial, accuracy))
            for accuracy in (segment.reached, best)
        )
        if not (math.isfinite(last) and last > first):
            return math.nan
        ratio = float(np.ptp(segment.rounds)) / (last - first)
        return min(max(ratio, 1 / LARGEST_RATIO), LARGEST_RATIO)

    def _remaining(
        self, points: FloatArray, now: FloatArray, initial: float, reached: float
    ) -> FloatArray:
        """Rounds from accuracy ``reached`` to the target, [...]; inf where it is not reached.

        The share of all rounds that remains is that of the current settings ``now``, for all
        settings. It is at least that of the missing accuracy, as on every concave learning curve: a
        difference of two fits may be 0. Fractions of a round are kept, because one round of few
        steps would else seem as good as one of many near the target.
        """
        share = (self.target - reached) / (self.target - initial)
        whole = float(self._curve.rounds(self.target, now))
        if math.isfinite(whole):
            share = max(share, 1 - float(self._rounds_at(now, initial, reached)) / whole)
        return np.asarray(share * self._curve.rounds(self.target, points))

    def _rounds_at(self, points: FloatArray, initial: float, reached: float) -> FloatArray:
        """Rounds at which the curve reaches an accuracy, [...], from points [..., 5]."""
        low, high = self.targets[0], self.targets[-1]
        if reached >= low:
            return np.asarray(self._curve.rounds(min(reached, high), points))
        share = 0.0 if low <= initial else (reached - initial) / (low - initial)
        return np.asarray(share * self._curve.rounds(low, points))


def _participants(rows: Sequence[Row], decision: Decision) -> float:
    """Participants of the rounds after a decision."""
    found = [row["clients_per_round"] for row in rows if row["round"] > decision.round]
    return float(found[0] if found else rows[-1]["clients_per_round"])
