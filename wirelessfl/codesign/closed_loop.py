"""Closed loop: correct the learning curve by what a run shows, and redesign its next rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, get_args

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.codesign.curves import Pilot, RoundsCurve
from wirelessfl.codesign.curves.fit import FITS
from wirelessfl.codesign.curves.pilot import SCORE
from wirelessfl.codesign.factors import Factors, Learn
from wirelessfl.codesign.grid_costs import Grid, grid_costs
from wirelessfl.codesign.remaining import Remaining
from wirelessfl.codesign.segments import Segment, segments_of
from wirelessfl.divergence import counted
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.redesign import Decision, Redesign, RoundSettings, SoFar
from wirelessfl.wording import shown

CAUTION = 0.5
"""Standard deviations of the error of a saving by which it must exceed ``least_gain``."""
SECONDS = (1.0, 0.0)


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
    ratios as noisy observations; a part with few rounds says little about those that follow:

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
    def _curve(self) -> Remaining:
        """Rounds to the target by the curve of the pilots."""
        return Remaining.of(self.pilots, self.targets, self.form, self.target)

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
        points = np.stack(
            [self._curve.points(*grid, run.participants, largest) for _, _, largest in costs]
        )
        stays = (
            next(i for i, way in enumerate(ways) if way.uplink == now.uplink),
            grid.local_steps.index(now.local_steps),
            grid.edge_rounds.index(now.edge_rounds),
        )
        factor, error = self._factors(self._segments(run), initial, points, points[stays])
        rounds = factor * self._curve.rounds(points, points[stays], initial, reached)
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
        """Mean seconds and joules of a round, and m, over the grid, [H, E] each."""
        return grid_costs(run, way, grid, joules=self.objective[1] > 0)

    def _segments(self, run: SoFar) -> list[Segment]:
        """The parts of the run with equal H, E, K and m."""

        def point(decision: Decision, clients: float) -> FloatArray:
            chosen = decision.settings
            largest = run.cost(chosen).largest if self._curve.masks else 1.0
            return self._curve.point(chosen.local_steps, chosen.edge_rounds, clients, largest)

        return [*segments_of(run, point)]

    def _factors(
        self, segments: Sequence[Segment], initial: float, points: FloatArray, now: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What the parts of the run say, see ``Factors.given``; ``initial`` is the first score."""
        return Factors(self.learn, self.error).given(
            np.array([segment.settings for segment in segments]).reshape(-1, now.size),
            np.array([self._curve.ratio(segment, initial) for segment in segments]),
            np.array([len(segment.rounds) - 1 for segment in segments]),
            np.array([self._curve.share(segment) for segment in segments]),
            points,
            now,
        )
