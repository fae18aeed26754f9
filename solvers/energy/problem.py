"""The least energy of a round: reads and validates the arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.validation import shown
from solvers.arrays import broadcast, finite, first
from solvers.bands.least_band import LN2, least_band, upload_seconds
from solvers.bands.least_time import Cells, least_time
from solvers.outcome import located

_EPS = float(np.finfo(np.float64).eps)
_UNITS = {
    "bits": "bits",
    "cycles": "CPU cycles",
    "gain_per_noise": "Hz/W: power gain / noise density",
    "max_power_watts": "watts",
    "max_cpu_hz": "Hz",
    "kappa": "joules per cycle and Hz^2",
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated arguments, one problem per row.

    Args:
        bits, cycles, gain, power, speed, kappa: [problems, clients].
        band: B in Hz, [problems].
        deadline: T in seconds, [problems]; NaN where the end is weighed.
        weights: w_T and w_E, [problems] each; 0 and 1 where there is a deadline.
        shape: shape of the batch.
        trouble: why problems have no answer, by row; filled by ``feasible``.
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
    trouble: dict[int, str] = field(default_factory=dict)

    def rows(self, rows: slice | BoolArray | IntArray) -> Problem:
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
        """Earliest end of the computation, [problems, clients]."""
        nothing = np.zeros(self.cycles.shape)
        return np.divide(self.cycles, self.speed, out=nothing, where=self.cycles > 0)

    def cells(self, rows: IntArray) -> Cells:
        """The problems of least time at full power and speed."""
        snr = self.gain[rows] * self.power[rows]
        return Cells(self.bits[rows], self.ready[rows], snr, self.band[rows])

    def feasible(self) -> tuple[BoolArray, FloatArray]:
        """Which problems have answers, and their deadlines, both [problems].

        A deadline that falls short of the earliest end by rounding errors is moved to it.
        """
        mute = (self.bits > 0) & (self.gain * self.power == 0)
        halted = (self.cycles > 0) & (self.speed == 0)
        good: BoolArray = ~(mute | halted).any(-1)
        for row in np.flatnonzero(~good):
            self.trouble[int(row)] = _stuck(mute[row], self.gain[row], halted[row])
        end = self.deadline.copy()
        at = np.flatnonzero(good & ~np.isnan(end))
        if not at.size:
            return good, end
        window = end[at, None] - self.ready[at]
        snr = self.gain[at] * self.power[at]
        never = np.where(self.bits[at] > 0, window * snr <= self.bits[at] * LN2, window < 0)
        late = never.any(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            late |= ~(least_band(self.bits[at], window, snr)[0].sum(-1) <= self.band[at])
        at = at[late]
        if at.size:
            self._late(at, good, end)
        return good, end

    def _late(self, at: IntArray, good: BoolArray, end: FloatArray) -> None:
        cells = self.cells(at)
        low, high = least_time(cells)
        for row, soonest, reached in zip(at, low, high, strict=True):
            if end[row] >= soonest * (1 - 4 * _EPS):
                end[row] = max(end[row], reached)
            else:
                good[row] = False
                self.trouble[int(row)] = self._missed(int(row), float(end[row]), float(reached))

    def _missed(self, row: int, end: float, reached: float) -> str:
        text = (
            f"deadline_seconds is {end:.6g}: even at full power and speed the clients need "
            f"{reached:.6g} s, {reached - end:.3g} s more"
        )
        cells = self.cells(np.array([row]))
        whole = np.broadcast_to(cells.bandwidth_hz[:, None], cells.bits.shape)
        ends = (cells.ready + upload_seconds(cells.bits, whole, cells.snr_hz))[0]
        slowest = int(ends.argmax())
        if ends[slowest] > end:
            return f"{text}; client {slowest} needs {ends[slowest]:.6g} s in the whole band"
        band = least_band(cells.bits, reached - cells.ready, cells.snr_hz)[0][0]
        widest = int(band.argmax())
        share = band[widest] / cells.bandwidth_hz[0]
        return f"{text}; client {widest} then takes {share:.0%} of the band"

    def explain(self, problems: int) -> str:
        """Say how many of ``problems`` have no answer, and why the first has none."""
        if not self.trouble:
            return ""
        text = self.trouble[min(self.trouble)]
        without = np.zeros(problems, dtype=bool)
        without[list(self.trouble)] = True
        return located(text, without, self.shape)


def _stuck(mute: BoolArray, gain: FloatArray, halted: BoolArray) -> str:
    if mute.any():
        client = int(mute.argmax())
        why = "gain_per_noise" if gain[client] == 0 else "max_power_watts"
        return f"client {client} cannot send: {why} is 0"
    return f"client {int(halted.argmax())} cannot compute: max_cpu_hz is 0"


def read_problem(
    clients: dict[str, Any], bandwidth_hz: Any, deadline_seconds: Any, weights: Any
) -> Problem:
    """Read and validate the arguments.

    Args:
        clients: the arguments [..., clients], by name, in the order of ``Problem``.
        bandwidth_hz: [...].
        deadline_seconds: [...], or None.
        weights: w_T and w_E, [...] each, or None.

    Raises:
        ValueError: an argument is not a finite number in range, the shapes do not fit, or there
            are both or neither of a deadline and weights.
    """
    ends = read_end(deadline_seconds, weights)
    arrays = {name: finite(name, value, _UNITS[name]) for name, value in clients.items()}
    cell = {"bandwidth_hz": finite("bandwidth_hz", bandwidth_hz, "Hz", above=True)} | ends
    full, single, _ = broadcast(arrays, cell, "[..., clients]")
    each = {n: a.reshape(-1, a.shape[-1]) for n, a in zip(arrays, full, strict=True)}
    whole = {n: a.reshape(-1) for n, a in zip(cell, single, strict=True)}
    band = whole["bandwidth_hz"]
    return Problem(
        bits=each["bits"],
        cycles=each["cycles"],
        gain=each["gain_per_noise"],
        power=each["max_power_watts"],
        speed=each["max_cpu_hz"],
        kappa=each["kappa"],
        band=band,
        deadline=whole.get("deadline_seconds", np.full(len(band), np.nan)),
        weights=(whole.get("w_T", np.zeros(len(band))), whole.get("w_E", np.ones(len(band)))),
        shape=single[0].shape,
    )


def read_end(deadline_seconds: Any, weights: Any) -> dict[str, FloatArray]:
    """What the end of the round is worth: ``deadline_seconds``, or ``w_T`` and ``w_E``, [...].

    Raises:
        ValueError: there are both or neither, or one is not a finite number in range.
    """
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
    found = {"w_T": seconds, "w_E": joules}
    units = {"w_T": "cost per second", "w_E": "cost per joule"}
    arrays = {name: finite(f"weights: {name}", found[name], unit) for name, unit in units.items()}
    good = arrays["w_T"] > 0
    if not good.all():
        index, value = first(good, arrays["w_T"])
        raise ValueError(
            f"weights: w_T{index} is {value}, and energy alone never ends a round: give a cost "
            "> 0 per second, or deadline_seconds."
        )
    return arrays
