"""Numbers of rounds that pilots need, as arrays: known, or bounded from one side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.codesign.curves.pilot import CENSORED, EARLY, Pilot

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
        found = [[pilot.reached(target) for target in targets] for pilot in pilots]
        return cls(
            points_of(pilots),
            np.array(targets, float),
            np.array([[one.rounds for one in row] for row in found]),
            np.array([[one.kind == CENSORED for one in row] for row in found]),
            np.array([[one.kind == EARLY for one in row] for row in found]),
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
    wanted = np.geomspace(rounds[0], rounds[-1], TRACK)
    kept = np.unique(np.searchsorted(rounds, wanted).clip(0, len(rounds) - 1))
    return np.stack([np.log(rounds[kept]), best[kept]])
