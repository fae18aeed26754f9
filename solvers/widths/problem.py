"""The problem of widths as its caller states it: read, checked, and explained if infeasible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.arrays import first, numbers

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# So that the mean coverage of up to 2^23 clients, in float64, never rounds up to a whole number.
_MAX_NEURONS = 2**30


@dataclass(frozen=True, eq=False)
class Levels:
    """What clients can choose from.

    Args:
        seconds: [clients, levels], not decreasing along levels.
        neurons: [layers, levels], not decreasing along levels.
    """

    seconds: FloatArray
    neurons: IntArray

    @property
    def full(self) -> IntArray:
        """Neurons of the full model, K [layers]."""
        return self.neurons[:, -1]

    @property
    def gains(self) -> IntArray:
        """Neurons that a level keeps beyond those of the level before, [layers, levels]."""
        return np.asarray(np.diff(self.neurons, axis=-1, prepend=0), dtype=np.int64)

    @property
    def begin(self) -> float:
        """Seconds by which every client has ended level 0, the minimum that a round takes."""
        return float(self.seconds[:, 0].max())

    def by(self, limit: float) -> IntArray:
        """The largest level of each client that ends within ``limit`` seconds, [clients]."""
        return np.asarray(np.count_nonzero(self.seconds <= limit, axis=-1) - 1, dtype=np.int64)

    def kept(self, limit: float) -> IntArray:
        """Neurons that clients keep together at these levels, [layers]."""
        ended = np.count_nonzero(self.seconds <= limit, axis=0)
        return np.asarray(self.gains @ ended, dtype=np.int64)

    def explain(self, coverage: int) -> str:
        """Why not even full models reach ``coverage``, by the layer that is furthest from it."""
        clients, layer = len(self.seconds), int(self.full.argmax())
        width = int(self.full[layer])
        return (
            f"layer {layer}: coverage {coverage} of {width} neurons takes as many clients, and "
            f"with {clients}, all at the full width, {(coverage - clients) * width} neurons are "
            "missing"
        )


def read_levels(seconds: Any, neurons: Any) -> Levels:
    """The problem, checked; arguments and errors are those of ``fastest_widths``."""
    times = numbers("seconds", seconds)
    if times.ndim != 2 or not times.size:
        raise ValueError(
            f"seconds has shape {times.shape}: give [clients, levels], at least one of each."
        )
    good = (times >= 0) & (times < np.inf)
    if not good.all():
        place, value = first(good, times)
        remedy = "give a finite number, 0 or more"
        if value == np.inf:
            remedy += ", and leave out clients and levels that never end"
        raise ValueError(f"seconds{place} is {value}: {remedy}.")
    _check_rising(
        "seconds",
        times,
        "give levels in rising order of width, and np.maximum.accumulate(seconds, -1) of noisy "
        "measurements",
    )
    widths = numbers("neurons", neurons)
    if widths.ndim not in (1, 2) or not widths.size or widths.shape[-1] != times.shape[1]:
        raise ValueError(
            f"neurons has shape {widths.shape}: give [levels] or [layers, levels], with the "
            f"{times.shape[1]} levels of seconds."
        )
    good = (widths >= 1) & (widths <= _MAX_NEURONS) & (widths == np.rint(widths))
    if not good.all():
        place, value = first(good, widths)
        raise ValueError(f"neurons{place} is {value}: give a whole number from 1 to 2^30.")
    _check_rising("neurons", widths, "give levels in rising order of width")
    return Levels(times, np.atleast_2d(widths).astype(np.int64))


def _check_rising(name: str, values: FloatArray, remedy: str) -> None:
    """Raise at the first value that is less than the one of the level before."""
    good = np.ones(values.shape, dtype=bool)
    np.greater_equal(values[..., 1:], values[..., :-1], out=good[..., 1:])
    if not good.all():
        place, value = first(good, values)
        _, before = first(good, np.roll(values, 1, axis=-1))
        raise ValueError(
            f"{name}{place} is {value}, less than the {before} of the level before: {remedy}."
        )
