"""The width problem: reads and validates the arguments, and explains infeasibility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.validation import shown
from solvers.arrays import first, numbers

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# With this limit the float64 mean coverage of up to 2^23 clients never rounds up to an integer.
_MAX_NEURONS = 2**30


@dataclass(frozen=True, eq=False)
class WidthLevels:
    """Durations and sizes of the levels that clients can choose from.

    Args:
        seconds: [clients, levels], not decreasing along levels.
        neurons: [layers, levels], not decreasing along levels.
    """

    seconds: FloatArray
    neurons: IntArray

    @property
    def full(self) -> IntArray:
        """Number of neurons of the full model, K [layers]."""
        return self.neurons[:, -1]

    @property
    def gains(self) -> IntArray:
        """Number of neurons that each level adds to the previous one, [layers, levels]."""
        return np.asarray(np.diff(self.neurons, axis=-1, prepend=0), dtype=np.int64)

    @property
    def begin(self) -> float:
        """Minimum duration of a round: the seconds of the slowest client at level 0."""
        return float(self.seconds[:, 0].max())

    def by(self, limit: float) -> IntArray:
        """The largest level that each client finishes within ``limit`` seconds, [clients]."""
        return np.asarray(np.count_nonzero(self.seconds <= limit, axis=-1) - 1, dtype=np.int64)

    def kept(self, limit: float) -> IntArray:
        """Neurons [layers] of the largest levels within ``limit`` seconds, summed over clients."""
        ended = np.count_nonzero(self.seconds <= limit, axis=0)
        return np.asarray(self.gains @ ended, dtype=np.int64)

    def explain(self, coverage: int) -> str:
        """Explain why even full models do not reach ``coverage``; names the widest layer."""
        clients, layer = len(self.seconds), int(self.full.argmax())
        width = int(self.full[layer])
        return (
            f"layer {layer}: coverage {coverage} needs at least {coverage} clients; with {clients} "
            f"clients at full width ({width} neurons), {(coverage - clients) * width} neurons are "
            "missing"
        )


def read_levels(seconds: Any, neurons: Any) -> WidthLevels:
    """Read and validate the problem; arguments and errors are those of ``fastest_widths``."""
    times = numbers("seconds", seconds)
    if times.ndim != 2 or not times.size:
        raise ValueError(
            f"seconds has shape {times.shape}: give [clients, levels] with at least one of each."
        )
    good = (times >= 0) & (times < np.inf)
    if not good.all():
        index, value = first(good, times)
        remedy = "give a finite number >= 0"
        if value == np.inf:
            remedy += ", and omit clients and levels that never finish"
        raise ValueError(f"seconds{index} is {value}: {remedy}.")
    _check_rising(
        "seconds",
        times,
        "sort levels by increasing width, and pass np.maximum.accumulate(seconds, -1) if the "
        "measurements are noisy",
    )
    return WidthLevels(times, read_neurons(neurons, times.shape[1]))


def read_neurons(neurons: Any, levels: int | None = None) -> IntArray:
    """Number of neurons [layers, levels] per level; arguments are those of ``fastest_widths``."""
    widths = numbers("neurons", neurons)
    need = "at least one level" if levels is None else f"the {levels} levels of seconds"
    fits = levels is None or widths.shape[-1:] == (levels,)
    if widths.ndim not in (1, 2) or not widths.size or not fits:
        raise ValueError(
            f"neurons has shape {widths.shape}: give [levels] or [layers, levels], with {need}."
        )
    good = (widths >= 1) & (widths <= _MAX_NEURONS) & (widths == np.rint(widths))
    if not good.all():
        index, value = first(good, widths)
        raise ValueError(f"neurons{index} is {value}: give a whole number from 1 to 2^30.")
    _check_rising("neurons", widths, "sort levels by increasing width")
    return np.atleast_2d(widths).astype(np.int64)


def check_deadline(deadline: Any) -> float:
    """The deadline in seconds."""
    limit = numbers("deadline", deadline)
    if limit.ndim or not 0 < limit < np.inf:
        raise ValueError(f"deadline is {shown(deadline)}: give a finite number of seconds above 0.")
    return float(limit)


def missed(seconds: FloatArray, limit: float) -> str:
    """Name the slowest of the clients [clients] that miss the deadline even at level 0."""
    slowest = int(seconds.argmax())
    return (
        f"{np.count_nonzero(seconds > limit)} of {len(seconds)} clients miss the deadline of "
        f"{limit} seconds even at level 0; the slowest, client {slowest}, needs {seconds[slowest]} "
        "seconds"
    )


def _check_rising(name: str, values: FloatArray, remedy: str) -> None:
    """Raise if a value is less than that of the previous level."""
    good = np.ones(values.shape, dtype=bool)
    np.greater_equal(values[..., 1:], values[..., :-1], out=good[..., 1:])
    if not good.all():
        index, value = first(good, values)
        _, before = first(good, np.roll(values, 1, axis=-1))
        raise ValueError(
            f"{name}{index} is {value}, less than {before} at the previous level: {remedy}."
        )
