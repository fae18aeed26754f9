"""The uploads of clients that share a band: reads and validates the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from channels.arrays import BoolArray, FloatArray
from solvers.arrays import broadcast, finite
from solvers.bands.least_time import BandCells
from solvers.bands.shared import shared_band
from solvers.outcome import located, unable


@dataclass(frozen=True, eq=False)
class BandProblem:
    """Validated arguments, one problem per row.

    Args:
        cells: all problems, also those without an answer.
        shape: shape of the batch.
        values: [problems, clients], >= 0; None unless given.
        at_least: [problems], > 0; None unless given.
    """

    cells: BandCells
    shape: tuple[int, ...]
    values: FloatArray | None = None
    at_least: FloatArray | None = None

    @property
    def stuck(self) -> BoolArray:
        """Clients [problems, clients] with bits to send and no channel."""
        stuck: BoolArray = (self.cells.bits > 0) & (self.cells.snr_hz == 0)
        return stuck

    def unable(self, row: int) -> str:
        """Name the clients of a problem that cannot send; "" if all can."""
        return unable({"send: snr_hz is 0": self.stuck[row]})

    def explain(self, without: BoolArray) -> str:
        """Say which problems [problems] have no answer, and name the clients of the first."""
        return located(self.unable(int(without.argmax())), without, self.shape)


def read_problem(
    bits: Any,
    compute_seconds: Any,
    snr_hz: Any,
    bandwidth_hz: Any,
    values: Any = None,
    at_least: Any = None,
) -> BandProblem:
    """Read and validate the uploads, and the values of clients if ``values`` is not None."""
    arrays = {
        "bits": finite("bits", bits, "bits"),
        "compute_seconds": finite("compute_seconds", compute_seconds, "seconds"),
        "snr_hz": finite("snr_hz", snr_hz, "Hz: transmit power x gain / noise density"),
    }
    scalars = {"bandwidth_hz": shared_band(bandwidth_hz, arrays)}
    if values is not None:
        arrays["values"] = finite("values", values, "any one unit")
        scalars["at_least"] = finite("at_least", at_least, "the unit of values", above=True)
    full, single, _ = broadcast(arrays, scalars, "[..., clients]")
    size, ready, snr, *worth = (array.reshape(-1, array.shape[-1]) for array in full)
    bands, *per_problem = (array.reshape(-1) for array in single)
    return BandProblem(BandCells(size, ready, snr, bands), single[0].shape, *worth, *per_problem)
