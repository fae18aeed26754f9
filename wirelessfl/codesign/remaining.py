"""Rounds that a run still needs by the learning curve of pilots, and those it should have taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.codesign.curves import Pilot
from wirelessfl.codesign.curves.curve import Fitted
from wirelessfl.codesign.curves.fit import FITS
from wirelessfl.codesign.curves.observed import NAMES, Observed
from wirelessfl.codesign.segments import Segment

LARGEST_RATIO = 4.0
"""Largest ratio of the rounds of a part of a run to those of the curve, either way."""
LEAST_PROGRESS = 0.01
"""What a part of a run has gained at least, as a share of the accuracy that it lacks."""
CLIENTS, LARGEST = NAMES.index("clients"), NAMES.index("largest")


@dataclass(frozen=True, eq=False)
class Remaining:
    """Rounds to a target, from an accuracy that a run has reached.

    Args:
        observed: what the pilots say.
        curve: their learning curve.
        target: accuracy to reach, within the fitted ones.
    """

    observed: Observed
    curve: Fitted
    target: float

    @classmethod
    def of(
        cls, pilots: Sequence[Pilot], targets: Sequence[float], form: str, target: float
    ) -> Remaining:
        """By a curve of this form, fitted to pilots at these targets."""
        observed = Observed.of(pilots, np.array(targets))
        return cls(observed, FITS[form](observed, None), target)

    @property
    def masks(self) -> bool:
        """Whether the curve depends on the largest mask."""
        return bool(self.observed.varies[LARGEST])

    def point(self, steps: int, edges: int, clients: float, largest: float) -> FloatArray:
        """H, E, K, m and sigma^2 of the curve; K and m only where pilots differ in them, [5]."""
        point: FloatArray = self.observed.points[0].astype(np.float64)
        point[:2] = steps, edges
        for place, value in ((CLIENTS, clients), (LARGEST, largest)):
            if self.observed.varies[place]:
                point[place] = value
        return point

    def points(
        self,
        local_steps: Sequence[int],
        edge_rounds: Sequence[int],
        clients: float,
        largest: FloatArray,
    ) -> FloatArray:
        """The settings of a grid, [H, E, 5]; ``largest`` is m, [H, E]."""
        return np.array(
            [
                [
                    self.point(steps, edges, clients, largest[h, e])
                    for e, edges in enumerate(edge_rounds)
                ]
                for h, steps in enumerate(local_steps)
            ]
        )

    def rounds(
        self, points: FloatArray, now: FloatArray, initial: float, reached: float
    ) -> FloatArray:
        """Rounds from accuracy ``reached`` to the target, [...]; inf where it is not reached.

        The share of all rounds that remains is that of the current settings ``now``, for all
        settings. It is at least that of the missing accuracy, as on every concave learning curve: a
        difference of two fits may be 0. Fractions of a round are kept, because one round of few
        steps would else seem as good as one of many near the target.
        """
        share = (self.target - reached) / (self.target - initial)
        whole = float(self.curve.rounds(self.target, now))
        if math.isfinite(whole):
            share = max(share, 1 - float(self._until(now, initial, reached)) / whole)
        return np.asarray(share * self.curve.rounds(self.target, points))

    def ratio(self, segment: Segment, initial: float) -> float:
        """Rounds of a part of the run over those of the curve; NaN if the curve has none."""
        missing = max(self.target - segment.reached, 0.0)
        least = segment.reached + LEAST_PROGRESS * missing
        best = min(max(float(segment.scores.max()), least), self.target)
        first, last = (
            float(self._until(segment.settings, initial, accuracy))
            for accuracy in (segment.reached, best)
        )
        if not (math.isfinite(last) and last > first):
            return math.nan
        ratio = float(np.ptp(segment.rounds)) / (last - first)
        return min(max(ratio, 1 / LARGEST_RATIO), LARGEST_RATIO)

    def share(self, segment: Segment) -> float:
        """Rounds of a part of the run over those of the curve from start to target."""
        whole = float(self.curve.rounds(self.target, segment.settings))
        return float(np.ptp(segment.rounds)) / whole

    def _until(self, points: FloatArray, initial: float, reached: float) -> FloatArray:
        """Rounds at which the curve reaches an accuracy, [...], from points [..., 5]."""
        low, high = self.observed.targets[0], self.observed.targets[-1]
        if reached >= low:
            return np.asarray(self.curve.rounds(min(reached, high), points))
        share = 0.0 if low <= initial else (reached - initial) / (low - initial)
        return np.asarray(share * self.curve.rounds(low, points))
