"""The least energy of a round: reads and validates the arguments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.validation import shown
from solvers.arrays import broadcast, finite, first
from solvers.bands.least_band import least_band, upload_seconds
from solvers.bands.least_time import BandCells, least_time
from solvers.bands.shared import shared_band
from solvers.outcome import located, unable

LATE = 8 * float(np.finfo(np.float64).eps)
"""Relative shortfall of a deadline that rounding errors of the least time explain."""
_UNITS = {
    "bits": "bits",
    "cycles": "CPU cycles",
    "gain_per_noise": "Hz/W: power gain / noise density",
    "max_power_watts": "watts",
    "max_cpu_hz": "Hz",
    "kappa": "joules per cycle and Hz^2",
}


@dataclass(frozen=True, eq=False)
class EnergyProblem:
    """Validated arguments, one problem per row.

    Args:
        bits, cycles, gain, power, speed, kappa: [problems, clients].
        band: B in Hz, [problems].
        deadline: T in seconds, [problems]; NaN where the end is weighed.
        weights: w_T and w_E, [problems] each; 0 and 1 where there is a deadline.
        shape: shape of the batch.
    """

    bits: FloatArray
    cycles: FloatArray
    gain: FloatArray
    power: FloatArray
    speed: FloatArray
    kappa: FloatArray
    band: FloatArray
    deadline: FloatArray
    weights: tuple[FloatArray, FloatArray]
    shape: tuple[int, ...]

    def rows(self, rows: slice | BoolArray | IntArray) -> EnergyProblem:
        """Some of the problems."""
        return replace(
            self,
            bits=self.bits[rows],
            cycles=self.cycles[rows],
            gain=self.gain[rows],
            power=self.power[rows],
            speed=self.speed[rows],
            kappa=self.kappa[rows],
            band=self.band[rows],
            deadline=self.deadline[rows],
            weights=(self.weights[0][rows], self.weights[1][rows]),
        )

    @property
    def ready(self) -> FloatArray:
        """Earliest end of the computation, [problems, clients]; infinite without a CPU."""
        never = np.where(self.cycles > 0, np.inf, 0.0)
        return np.divide(self.cycles, self.speed, out=never, where=self.speed > 0)

    def cells(self, rows: IntArray) -> BandCells:
        """The problems of least time at full power and speed."""
        part = self.rows(rows)
        return BandCells(part.bits, part.ready, part.gain * part.power, part.band)

    def feasible(self) -> tuple[BoolArray, FloatArray]:
        """Which problems have answers, and their deadlines, both [problems].

        A deadline that falls short of the least time by ``LATE`` or less is moved to it.
        """
        lacks = lacking(self.bits, self.cycles, self.gain, self.power, self.speed)
        good = ~np.any(list(lacks.values()), axis=0).any(-1)
        end = self.deadline.copy()
        at = np.flatnonzero(good & ~np.isnan(end))
        at = at[~self.cells(at).fit(end[at])]
        if at.size:
            cells = self.cells(at)
            latest = end[at] * (1 + LATE)
            near = cells.fit(latest)
            good[at[~near]] = False
            at = at[near]
            end[at] = np.clip(least_time(cells.rows(near))[1], end[at], latest[near])
        return good, end

    def explain(self, feasible: BoolArray) -> str:
        """Say how many problems have no answer, and why the first has none."""
        row = int((~feasible).argmax())
        part = (array[row] for array in (self.bits, self.cycles, self.gain, self.power, self.speed))
        return located(unable(lacking(*part)) or self._missed(row), ~feasible, self.shape)

    def _missed(self, row: int) -> str:
        cells, end = self.cells(np.array([row])), float(self.deadline[row])
        reached = float(least_time(cells)[1][0])
        text = (
            f"deadline_seconds is {end:.6g}: even at full power and speed the clients need "
            f"{reached:.6g} s, {reached - end:.3g} s more"
        )
        whole = np.broadcast_to(cells.bandwidth_hz[:, None], cells.bits.shape)
        ends = (cells.ready + upload_seconds(cells.bits, whole, cells.snr_hz))[0]
        slowest = int(ends.argmax())
        if ends[slowest] > end:
            return f"{text}; client {slowest} needs {ends[slowest]:.6g} s in the whole band"
        band = least_band(cells.bits, reached - cells.ready, cells.snr_hz)[0][0]
        widest = int(band.argmax())
        share = band[widest] / cells.bandwidth_hz[0]
        return f"{text}; client {widest} then takes {share:.0%} of the band"


def lacking(
    bits: FloatArray, cycles: FloatArray, gain: FloatArray, power: FloatArray, speed: FloatArray
) -> dict[str, BoolArray]:
    """Clients with bits and no channel or power, or with cycles and no CPU, by reason."""
    sends = bits > 0
    return {
        "send: gain_per_noise is 0": sends & (gain == 0),
        "send: max_power_watts is 0": sends & (gain > 0) & (power == 0),
        "compute: max_cpu_hz is 0": (cycles > 0) & (speed == 0),
    }


def read_problem(
    clients: dict[str, Any], bandwidth_hz: Any, deadline_seconds: Any, weights: Any
) -> EnergyProblem:
    """Read and validate the arguments.

    Args:
        clients: the arguments [..., clients], by name, in the order of ``EnergyProblem``.
        bandwidth_hz: [...].
        deadline_seconds: [...], or None.
        weights: w_T and w_E, [...] each, or None.
    """
    ends = read_end(deadline_seconds, weights)
    arrays = {name: finite(name, value, _UNITS[name]) for name, value in clients.items()}
    cell = {"bandwidth_hz": shared_band(bandwidth_hz, arrays)} | ends
    full, single, _ = broadcast(arrays, cell, "[..., clients]")
    by_name = {n: a.reshape(-1, a.shape[-1]) for n, a in zip(arrays, full, strict=True)}
    whole = {n: a.reshape(-1) for n, a in zip(cell, single, strict=True)}
    band = whole["bandwidth_hz"]
    return EnergyProblem(
        bits=by_name["bits"],
        cycles=by_name["cycles"],
        gain=by_name["gain_per_noise"],
        power=by_name["max_power_watts"],
        speed=by_name["max_cpu_hz"],
        kappa=by_name["kappa"],
        band=band,
        deadline=whole.get("deadline_seconds", np.full(len(band), np.nan)),
        weights=(whole.get("w_T", np.zeros(len(band))), whole.get("w_E", np.ones(len(band)))),
        shape=single[0].shape,
    )


def read_end(deadline_seconds: Any, weights: Any) -> dict[str, FloatArray]:
    """What the end of the round is worth: ``deadline_seconds``, or ``w_T`` and ``w_E``, [...]."""
    if (deadline_seconds is None) == (weights is None):
        both = "both given" if weights is not None else "missing"
        raise ValueError(
            f"deadline_seconds and weights are {both}: give deadline_seconds for the least joules "
            "within a time, or weights (w_T, w_E) for the least w_T seconds + w_E joules."
        )
    if weights is None:
        return {"deadline_seconds": finite("deadline_seconds", deadline_seconds, "seconds", True)}
    try:
        seconds, joules = weights
    except (TypeError, ValueError):
        raise ValueError(
            f"weights is {shown(weights)}: give (w_T, w_E), the costs of a second and of a joule."
        ) from None
    values = {"w_T": seconds, "w_E": joules}
    units = {"w_T": "cost per second", "w_E": "cost per joule"}
    arrays = {name: finite(f"weights: {name}", values[name], unit) for name, unit in units.items()}
    good = arrays["w_T"] > 0
    if not good.all():
        index, value = first(good, arrays["w_T"])
        raise ValueError(
            f"weights: w_T{index} is {value}, and energy alone never ends a round: give a cost "
            "> 0 per second, or deadline_seconds."
        )
    return arrays
