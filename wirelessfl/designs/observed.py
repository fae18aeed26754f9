"""Pilots as learning curves see them: accuracy after global rounds, and rounds to accuracies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.rows import has_diverged
from wirelessfl.base.wording import shown
from wirelessfl.config.stored import settings_by_flag
from wirelessfl.models.submodels import mean_reciprocal

SCORE = "validation_accuracy"
CENSORED, EXACT, EARLY = "censored", "exact", "early"


class PilotRun(Protocol):
    """A run with rows and settings: ``RunResult``, or a run of an archive."""

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One mapping per evaluation."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings by flag name or by table."""


class PilotReached(NamedTuple):
    """When a pilot reaches a target.

    Args:
        rounds: the number of global rounds if ``kind`` is "exact", interpolated between two
            evaluations; its upper bound if "early", before the first evaluation; its lower bound if
            "censored", because the pilot ends before.
        kind: see ``rounds``.
    """

    rounds: float
    kind: str


@dataclass(frozen=True, eq=False)
class Pilot:
    """A training run with its settings, as ``fit_rounds`` sees it.

    >>> import wirelessfl
    >>> pilot = wirelessfl.Pilot(5, 2, clients=20, rounds=[0, 10, 20], scores=[0.1, 0.5, 0.75])
    >>> pilot.reached(0.625)
    PilotReached(rounds=15.0, kind='exact')

    Args:
        local_steps: H, local steps of an edge round, >= 1.
        edge_rounds: E, edge rounds of a global round, >= 1.
        clients: K, participants of a global round, > 0.
        rounds: global round of each evaluation, increasing, [rows].
        scores: validation accuracy in [0, 1], [rows].
        largest: m >= 1: the largest submodel of a cell relative to equal ones (HIST), or the mean
            of 1/width over the clients (algorithms in which each client has a width).
        noise: sigma^2, error variance of over-the-air sums relative to the sums, >= 0.
        wall_seconds: wall-clock seconds of the training, >= 0.

    Raises:
        ConfigError: a value is out of range, or the two arrays do not fit each other.
    """

    local_steps: int
    edge_rounds: int
    clients: float
    rounds: IntArray
    scores: FloatArray
    largest: float = 1.0
    noise: float = 0.0
    wall_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (
            *(("local_steps", 1), ("edge_rounds", 1), ("clients", None)),
            *(("largest", 1), ("noise", 0), ("wall_seconds", 0)),
        ):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            low = 0 if least is None else least
            if not (number and math.isfinite(value) and value >= low and (value or least == 0)):
                need = "> 0" if least is None else f">= {least}"
                raise ConfigError(f"{name} of a pilot is {shown(value)}: give a number {need}.")
        try:
            rounds = np.asarray(self.rounds, float)
            scores = np.asarray(self.scores, float)
        except (TypeError, ValueError):
            raise ConfigError(
                "rounds and scores of a pilot have values that are not numbers: give two equally "
                "long lists of numbers."
            ) from None
        if rounds.ndim != 1 or rounds.shape != scores.shape or not rounds.size:
            raise ConfigError(
                f"rounds and scores of a pilot have the shapes {rounds.shape} and {scores.shape}: "
                "give two equally long lists with one entry per evaluation."
            )
        if not (rounds >= 0).all() or (np.diff(rounds) <= 0).any() or (rounds % 1 != 0).any():
            raise ConfigError(
                f"rounds of a pilot are {shown(self.rounds)}: give increasing whole numbers >= 0."
            )
        if not ((scores >= 0) & (scores <= 1)).all():
            raise ConfigError(
                f"scores of a pilot are {shown(self.scores)}: give accuracies in [0, 1]."
            )
        object.__setattr__(self, "rounds", rounds.astype(np.int64))
        object.__setattr__(self, "scores", scores)

    @classmethod
    def of(
        cls, result: PilotRun, *, noise: float | None = None, largest: float | None = None
    ) -> Pilot:
        """The pilot of a run.

        Args:
            result: a run, stored or just trained, with validation accuracy.
            noise: sigma^2 of a run over the air, whose rows do not have it; None for 0.
            largest: m of a run whose submodels are not fixed by its settings; None for that of the
                settings.

        Raises:
            ConfigError: the run has no validation accuracy, several models, sessions or another
                schedule than rounds, or its submodels or noise are not in its settings.
        """
        rows, settings = result.rows, result.settings
        if any(isinstance(settings.get(table), Mapping) for table in ("training", "run")):
            settings = settings_by_flag(settings)
        _check(rows, settings)
        if noise is None and settings.get("uplink") == "aircomp":
            raise ConfigError(
                "a run with uplink=aircomp does not store the noise of its sums: give "
                "Pilot.of(run, noise=...), or fit runs over an error-free uplink."
            )
        wall = rows[-1].get("wall_seconds", getattr(result, "seconds", 0.0))
        return cls(
            local_steps=int(settings["local_steps"]),
            edge_rounds=int(settings.get("edge_rounds", 1)),
            clients=float(settings.get("clients_per_round") or settings["clients"]),
            rounds=np.array([row["round"] for row in rows]),
            # A diverged model does not raise the best score so far, which ``best`` gives.
            scores=np.array([0.0 if has_diverged(row) else row[SCORE] for row in rows]),
            largest=_largest(settings) if largest is None else largest,
            noise=0.0 if noise is None else noise,
            wall_seconds=float(wall),
        )

    @property
    def label(self) -> str:
        """H and E, e.g. "H = 5, E = 2"."""
        return f"H = {self.local_steps}, E = {self.edge_rounds}"

    @property
    def settings(self) -> tuple[float, ...]:
        """H, E, K, m and sigma^2."""
        settings = self.local_steps, self.edge_rounds, self.clients, self.largest, self.noise
        return tuple(map(float, settings))

    @property
    def best(self) -> FloatArray:
        """The highest validation accuracy up to each evaluation, [rows]."""
        return np.maximum.accumulate(self.scores)

    def reached(self, target: float) -> PilotReached:
        """The global rounds after which the best validation accuracy so far reaches a target.

        Between two evaluations it is interpolated linearly. Nothing is interpolated before the
        first trained model, because the accuracy of the initial model says little.
        """
        best = self.best
        place = int(np.searchsorted(best, target))
        if place == len(best):
            return PilotReached(float(self.rounds[-1]), CENSORED)
        last = float(self.rounds[place])
        if place == 0 or self.rounds[place - 1] == 0:
            return PilotReached(max(last, 1.0), EARLY)
        before, after = best[place - 1], best[place]
        first = float(self.rounds[place - 1])
        share = float((target - before) / (after - before))
        return PilotReached(first + (last - first) * share, EXACT)


def _check(rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    """Refuse runs that do not train one model in global rounds, or lack validation data."""
    for field, what in (("task", "several models"), ("session", "sessions")):
        if any(field in row for row in rows):
            raise ConfigError(
                f"a run of {what} has no single learning curve: fit runs of one model without "
                "sessions."
            )
    for name in ("local_steps", "edge_rounds", "clients_per_round"):
        if len({row[name] for row in rows if name in row}) > 1:
            raise ConfigError(
                f"a run whose {name} was redesigned has no curve of one setting: fit runs without "
                "redesigns."
            )
    if settings.get("schedule", "rounds") != "rounds":
        raise ConfigError(
            f"a run with schedule={settings['schedule']} has no global rounds: fit runs with "
            "schedule=rounds."
        )
    if not rows or any(SCORE not in row for row in rows):
        raise ConfigError(
            "a run has no validation accuracy, and curves are not fitted to test data: train it "
            "with --validation-fraction 0.1."
        )


def _largest(settings: Mapping[str, Any]) -> float:
    """m of the submodels in the settings."""
    if "min_coverage" in settings:  # of algorithms in which each client has a width
        return _reciprocal(settings)
    if settings.get("mask_sizes", "uniform") == "uniform":
        return 1.0
    shares = settings.get("mask_shares")
    if shares is None:
        raise ConfigError(
            f"a run with mask_sizes={settings['mask_sizes']} has submodels that depend on the "
            "radio: fit runs with mask_sizes uniform, or give Pilot.of(run, largest=...), the "
            "largest size relative to equal ones."
        )
    shares = [float(share) for share in shares]
    return float(max(1.0, max(shares) * len(shares) / math.fsum(shares)))


def _reciprocal(settings: Mapping[str, Any]) -> float:
    """Mean of 1/width over the clients; budgets in bytes and flops count as full models."""
    budget = settings.get("budget", "width")
    if budget in ("deadline", "fastest"):
        raise ConfigError(
            f"a run with budget={budget} has widths that depend on the radio: fit runs with "
            "capacities or widths, or give Pilot.of(run, largest=...), the mean of 1/width."
        )
    widths = settings.get("widths") or settings.get("capacities")
    if budget != "width" or not widths:
        return 1.0
    return mean_reciprocal([float(width) for width in widths], int(settings["clients"]))


NAMES = ("local_steps", "edge_rounds", "clients", "largest", "noise")
"""Settings that the curve depends on: H, E, K, m and sigma^2, the columns of points."""


TRACK = 40
"""Largest number of rows of a pilot that a power law is fitted to."""


WORST = float(np.log(10.0))
"""Largest error of one prediction that counts in a mean, a factor of 10."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Rounds of each pilot to each target.

    Args:
        points: H, E, K, m and sigma^2, [pilots, 5].
        targets: increasing accuracies, [targets].
        rounds: global rounds or their bound, [pilots, targets].
        censored: whether ``rounds`` is a lower bound, because the pilot ends before, [pilots,
            targets].
        early: whether it is an upper bound: the first evaluation, [pilots, targets].
        weights: weight of each pilot, [pilots].
        tracks: for each pilot, logarithm of rounds and best accuracy so far, [2, rows].
    """

    points: FloatArray
    targets: FloatArray
    rounds: FloatArray
    censored: BoolArray
    early: BoolArray
    weights: FloatArray
    tracks: tuple[FloatArray, ...]

    @classmethod
    def of(cls, pilots: Sequence[Pilot], targets: FloatArray) -> Observed:
        """Where the pilots reach the targets."""
        reached = [[pilot.reached(target) for target in targets] for pilot in pilots]
        return cls(
            points_of(pilots),
            np.array(targets, float),
            np.array([[entry.rounds for entry in row] for row in reached]),
            np.array([[entry.kind == CENSORED for entry in row] for row in reached]),
            np.array([[entry.kind == EARLY for entry in row] for row in reached]),
            np.ones(len(pilots)),
            tuple(_track(pilot) for pilot in pilots),
        )

    @property
    def exact(self) -> BoolArray:
        """Whether the rounds are known, [pilots, targets]."""
        return ~(self.censored | self.early)

    @property
    def varies(self) -> BoolArray:
        """Which columns of ``points`` have several values, [5]."""
        return np.asarray(np.ptp(self.points, axis=0) > 0)

    @property
    def groups(self) -> IntArray:
        """A number for each pilot, equal for pilots with equal settings, [pilots]."""
        return np.unique(self.points, axis=0, return_inverse=True)[1].reshape(-1)

    def take(self, pilots: IntArray) -> Observed:
        """Some of the pilots, also several times, which adds weight."""
        kept, counts = np.unique(pilots, return_counts=True)
        return Observed(
            self.points[kept],
            self.targets,
            self.rounds[kept],
            self.censored[kept],
            self.early[kept],
            self.weights[kept] * counts,
            tuple(self.tracks[i] for i in kept),
        )

    def error(self, predicted: FloatArray) -> FloatArray:
        """log(predicted / observed), 0 where a prediction is within a bound, [pilots, targets]."""
        with np.errstate(divide="ignore"):
            error = np.log(predicted) - np.log(self.rounds)
        error = np.where(self.censored, np.minimum(error, 0.0), error)
        return np.where(self.early, np.maximum(error, 0.0), error)

    def mean_error(self, predicted: FloatArray) -> float:
        """Root mean square of ``error``, in which an error counts at most as a factor of 10."""
        error = np.clip(self.error(predicted), -WORST, WORST)
        return float(np.sqrt((error**2).mean()))


def points_of(pilots: Sequence[Pilot]) -> FloatArray:
    """The settings of pilots that the curve depends on, [pilots, 5]."""
    return np.array([pilot.settings for pilot in pilots])


def _track(pilot: Pilot) -> FloatArray:
    """Rows of a pilot at rounds whose logarithms are about equally far apart, [2, rows]."""
    trained = pilot.rounds > 0
    rounds, best = pilot.rounds[trained].astype(float), pilot.best[trained]
    even = np.geomspace(rounds[0], rounds[-1], TRACK)
    kept = np.unique(np.searchsorted(rounds, even).clip(0, len(rounds) - 1))
    return np.stack([np.log(rounds[kept]), best[kept]])
