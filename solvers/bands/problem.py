"""The uploads of clients that share a band: reads and validates the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from channels.arrays import BoolArray, FloatArray
from solvers.arrays import first, numbers
from solvers.bands.least_time import Cells


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated arguments, one problem per row.

    Args:
        cells: all problems, also those without an answer.
        shape: shape of the batch.
    """

    cells: Cells
    shape: tuple[int, ...]

    @property
    def stuck(self) -> BoolArray:
        """Clients [problems, clients] with bits to send and no channel."""
        stuck: BoolArray = (self.cells.bits > 0) & (self.cells.snr_hz == 0)
        return stuck

    def explain(self, without: BoolArray) -> str:
        """Say which problems [problems] have no answer, and name the clients of the first."""
        row = int(without.argmax())
        some = np.flatnonzero(self.stuck[row])
        names = ", ".join(str(int(i)) for i in some[:5]) + (", ..." if len(some) > 5 else "")
        text = f"client{'s' * (len(some) > 1)} {names} cannot send: snr_hz is 0"
        if not self.shape:
            return text
        item = ", ".join(str(int(i)) for i in np.unravel_index(row, self.shape))
        many = f"{np.count_nonzero(without)} of {without.size} problems are infeasible"
        return f"{many}; item [{item}]: {text}"


def read_problem(bits: Any, compute_seconds: Any, snr_hz: Any, bandwidth_hz: Any) -> Problem:
    """Read and validate the uploads.

    Raises:
        ValueError: an argument is not a finite number in range, or the shapes do not fit.
    """
    arrays = {
        "bits": finite("bits", bits, "bits"),
        "compute_seconds": finite("compute_seconds", compute_seconds, "seconds"),
        "snr_hz": finite("snr_hz", snr_hz, "Hz: transmit power x gain / noise density"),
    }
    band = finite("bandwidth_hz", bandwidth_hz, "Hz", above=True)
    full, band = broadcast(arrays, band, "[..., clients]")
    size, ready, snr = (array.reshape(-1, array.shape[-1]) for array in full)
    return Problem(Cells(size, ready, snr, band.reshape(-1)), band.shape)


def finite(name: str, values: Any, unit: str, above: bool = False) -> FloatArray:
    """``values`` as a float64 array, if all are finite and >= 0, or ``above`` 0.

    Raises:
        ValueError: a value is out of range; the message names the first, and the unit.
    """
    array = numbers(name, values)
    good = (array > 0 if above else array >= 0) & (array < np.inf)
    if not good.all():
        index, value = first(good, array)
        raise ValueError(
            f"{name}{index} is {value}: give a finite number {'>' if above else '>='} 0, in {unit}."
        )
    return array


def broadcast(
    arrays: dict[str, FloatArray], band: FloatArray, axes: str
) -> tuple[list[FloatArray], FloatArray]:
    """The arrays broadcast to one shape, and the bands to that without its last axis.

    Args:
        arrays: by name, the arrays of ``axes``.
        band: bandwidth_hz.
        axes: names of the axes, for messages.

    Raises:
        ValueError: the shapes cannot be broadcast, or there is no client.
    """
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays.values()), (*band.shape, 1))
    except ValueError:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        raise ValueError(
            f"the shapes do not fit: {shapes}, bandwidth_hz {band.shape}. Give {axes}, and "
            f"bandwidth_hz {axes.replace(', clients', '')}."
        ) from None
    if shape[-1] == 0:
        name = next(iter(arrays))
        raise ValueError(f"{name} has shape {arrays[name].shape}: give {axes}, with clients.")
    return [np.broadcast_to(a, shape) for a in arrays.values()], np.broadcast_to(band, shape[:-1])
