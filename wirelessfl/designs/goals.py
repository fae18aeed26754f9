"""What a design is for: a target accuracy at the least cost, or the most accuracy in a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown

NAMED = {"seconds": (1.0, 0.0), "joules": (0.0, 1.0)}
"""Weights of seconds and joules of the objectives with a name."""
MEAN, MEDIAN = "mean", "median"
"""Statistics over the draws of channels that have a name."""
SLACK = 1 + 1e-9
"""Relative excess over a budget, or of a number of rounds, that rounding errors explain."""


class Curve(Protocol):
    """Number of global rounds to a target, see ``wirelessfl.RoundsCurve``."""

    def rounds(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike = 1.0,
        noise: ArrayLike = 0.0,
    ) -> FloatArray:
        """Rounds to the target; inf where it is not reached."""

    def accuracy(
        self,
        rounds: ArrayLike,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike = 1.0,
        noise: ArrayLike = 0.0,
    ) -> FloatArray:
        """Largest target that is reached within a number of rounds."""


@dataclass(frozen=True)
class Goal:
    """Objective and limits of a design; created by :meth:`of`.

    Args:
        target: validation accuracy to reach; None for the most accuracy within the limits.
        weights: w_T and w_E of w_T seconds + w_E joules, where joules are means over the clients.
        max_seconds: limit on the simulated seconds of the run; None for no limit.
        max_client_joules: limit on the joules of the run, mean over the clients; None for none.
        every: global rounds between evaluations.
        quantile: which quantile over the draws of channels a run's seconds and joules count with;
            None for their mean.
    """

    target: float | None
    weights: tuple[float, float]
    max_seconds: float | None = None
    max_client_joules: float | None = None
    every: int = 1
    quantile: float | None = None

    @classmethod
    def of(
        cls,
        target: Any,
        objective: Any,
        max_seconds: float | None,
        max_client_joules: float | None,
        every: int = 1,
        statistic: Any = MEAN,
    ) -> Goal:
        """The goal of these arguments of ``wirelessfl.design``."""
        quantile = _quantile(statistic)
        limits = {"max_seconds": max_seconds, "max_client_joules": max_client_joules}
        for name, value in limits.items():
            if value is not None and not _positive(value):
                raise ConfigError(f"{name} is {shown(value)}: give a finite number above 0.")
        if target is None:
            if max_seconds is None and max_client_joules is None:
                raise ConfigError(
                    "no target and no budget: give target, the validation accuracy to reach, or "
                    "max_seconds or max_client_joules for the most accuracy within it."
                )
            if objective is not None:
                raise ConfigError(
                    f"objective={shown(objective)} needs a target: without one, accuracy is the "
                    "objective. Give target, or leave objective out."
                )
            if quantile is not None:
                raise ConfigError(
                    f"statistic={shown(statistic)} needs a target: without one, the rounds within "
                    "the budget are those of means. Give target, or leave statistic out."
                )
            return cls(None, (0.0, 0.0), max_seconds, max_client_joules, every)
        if isinstance(target, str):
            raise ConfigError(f"target is {shown(target)}, a string: give a number, such as 0.8.")
        if not _positive(target) or target > 1:
            raise ConfigError(f"target is {shown(target)}: give an accuracy > 0 and <= 1.")
        weights = _weights("seconds" if objective is None else objective)
        if weights[0] == 0 and max_seconds is None:
            raise ConfigError(
                "objective is joules alone: slower clocks always save more, so that no design is "
                "the best. Give max_seconds, or weights of seconds and joules, e.g. 1,10."
            )
        return cls(float(target), weights, max_seconds, max_client_joules, every, quantile)

    @property
    def seconds_only(self) -> bool:
        """Whether joules decide nothing but ties."""
        return self.weights[1] == 0 and self.max_client_joules is None

    @property
    def saves_energy(self) -> bool:
        """Whether powers and clocks below the largest ones can be better."""
        if self.target is None:  # without a limit on seconds, rounds could take forever
            return None not in (self.max_seconds, self.max_client_joules)
        return not self.seconds_only

    @property
    def title(self) -> str:
        """The objective in words, with its unit."""
        if self.target is None:
            return "validation accuracy"
        for name, weights in NAMED.items():
            if weights == self.weights:
                return f"{name} to {self.target:g}" + (" per client" if name == "joules" else "")
        time, energy = self.weights
        return f"{time:g} x seconds + {energy:g} x joules per client to {self.target:g}"

    @property
    def limits(self) -> str:
        """The limits in words; empty if there are none."""
        limits = []
        if self.max_seconds is not None:
            limits.append(f"{self.max_seconds:g} s")
        if self.max_client_joules is not None:
            limits.append(f"{self.max_client_joules:g} J per client")
        return " and ".join(limits)

    @property
    def statistic(self) -> str:
        """What of a run's seconds and joules over the draws of channels counts, in words."""
        if self.quantile is None:
            return MEAN
        return MEDIAN if self.quantile == 0.5 else f"{100 * self.quantile:g} % quantile"

    def whole(self, rounds: ArrayLike) -> FloatArray:
        """Global rounds after which a run ends that needs these: the next ones with an evaluation.

        Fits interpolate between evaluations; a run ends at one.
        """
        return np.asarray(np.ceil(np.asarray(rounds) / (self.every * SLACK)) * self.every)

    def rounds_to(self, target: float, curve: Curve, **where: Any) -> FloatArray:
        """Number of global rounds, whole and evaluated, of a run that ends at a target."""
        return self.whole(curve.rounds(target, **where))

    def rounds(
        self, curve: Curve, seconds: FloatArray, joules: FloatArray, **where: Any
    ) -> FloatArray:
        """Number of global rounds of designs: whole ones.

        Args:
            curve: rounds to a target.
            seconds, joules: costs of a global round.
            where: ``local_steps``, ``edge_rounds``, ``clients`` and ``largest`` of the designs.
        """
        if self.target is not None:
            return self.rounds_to(self.target, curve, **where)
        affordable = np.full(np.shape(seconds), np.inf)
        if self.max_seconds is not None:
            affordable = np.minimum(affordable, self.max_seconds / seconds)
        if self.max_client_joules is not None:
            affordable = np.minimum(affordable, self.max_client_joules / joules)
        return np.floor(affordable * SLACK)  # the last one is evaluated

    @staticmethod
    def most(curve: Curve) -> float | None:
        """The highest accuracy that a curve knows; None if it does not say."""
        targets = getattr(curve, "targets", ())
        return float(max(targets)) if len(targets) else None

    def rated(
        self,
        curve: Curve,
        rounds: FloatArray,
        seconds: FloatArray,
        joules: FloatArray,
        **where: Any,
    ) -> tuple[FloatArray, FloatArray]:
        """What is minimised, and what decides between designs that are equal in it.

        The first is the weighted cost of the run, or minus its accuracy; inf if the goal is not
        met. The second is joules, if there is a target. Otherwise designs can be equal because they
        all reach the highest accuracy that the curve knows: it is the part of the limits that this
        takes, of which the best design has the most left.

        Args:
            curve: rounds to a target.
            rounds: number of global rounds.
            seconds, joules: costs of a global round.
            where: as in :meth:`rounds`.
        """
        with np.errstate(invalid="ignore"):
            if self.target is not None:
                time, energy = rounds * seconds, rounds * joules
                return self._cost(time, energy), energy
            able = np.isfinite(seconds) & (rounds > 0)
            accuracy = curve.accuracy(np.where(able, rounds, 1.0), **where)
            top = self.most(curve)
            needed = rounds if top is None else self.rounds_to(top, curve, **where)
            used = self._used(needed * seconds, needed * joules)
        return np.where(able, -accuracy, np.inf), used

    def _cost(self, time: FloatArray, energy: FloatArray) -> FloatArray:
        """The weighted cost of runs; inf if they are too late or spend too much."""
        score = self.weights[0] * time
        if self.weights[1] > 0:
            score = score + self.weights[1] * energy
        late = ~np.isfinite(time)
        if self.max_seconds is not None:
            late |= ~(time <= self.max_seconds * SLACK)
        if self.max_client_joules is not None:
            late |= ~(energy <= self.max_client_joules * SLACK)
        return np.where(late, np.inf, score)

    def _used(self, time: FloatArray, energy: FloatArray) -> FloatArray:
        """The largest part of a limit that runs use."""
        used = np.zeros(np.shape(time))
        if self.max_seconds is not None:
            used = np.maximum(used, time / self.max_seconds)
        if self.max_client_joules is not None:
            used = np.maximum(used, energy / self.max_client_joules)
        return used


def _quantile(statistic: Any) -> float | None:
    """The quantile of a statistic; None for the mean."""
    if statistic == MEAN:
        return None
    part = 0.5 if statistic == MEDIAN else statistic
    if not _positive(part) or part >= 1:
        raise ConfigError(
            f"statistic is {shown(statistic)}: give mean, median, or a quantile between 0 and 1 "
            "such as 0.9."
        )
    return float(part)


def _positive(value: Any) -> bool:
    number = not isinstance(value, bool) and isinstance(value, int | float | np.number)
    return number and 0 < float(value) < math.inf


def _weights(objective: Any) -> tuple[float, float]:
    """The weights of an objective."""
    if isinstance(objective, str) and objective in NAMED:
        return NAMED[objective]
    remedy = 'give "seconds", "joules", or two weights >= 0, of seconds and of joules per client'
    if isinstance(objective, str) or not isinstance(objective, Sequence) or len(objective) != 2:
        raise ConfigError(f"objective is {shown(objective)}: {remedy}.")
    fits = [_positive(weight) or weight == 0 for weight in objective]
    if not all(fits) or not any(objective):
        raise ConfigError(f"objective is {shown(objective)}: {remedy}, not both 0.")
    return float(objective[0]), float(objective[1])
