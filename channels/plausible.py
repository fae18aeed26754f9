"""Plausible ranges of physical values, and notes on values outside of them.

Such values are allowed, but probably in the wrong unit. Runs, prices, link budgets and the entry
points of solvers look at their arguments here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from channels.arguments import unknown_keyword
from channels.arrays import FloatArray
from channels.decibels import watts_to_dbm
from channels.devices import Devices
from channels.network import ChannelDraw, Network
from channels.notes import Notes, is_outside
from channels.recorded import Recorded
from channels.validation import RECEIVE_ARRAYS, as_numpy

LEAST_BANDWIDTH_HZ = 1e3
"""A quarter of the smallest subcarrier of cellular radio, 3.75 kHz (NB-IoT)."""
LEAST_CPU_HZ = 1e6
"""The clock of home computers of about 1980."""
MOST_CPU_HZ = 1e10
"""Overclocked processors, cooled with liquid helium, have reached 9.1 GHz."""
MOST_COMPUTE_W = 1e3
"""Power of a server with a GPU; kappa f^3 of a telephone is a few watts."""
MOST_POWER_W = 2.0
"""33 dBm, the most that handheld devices have had (GSM, power class 4)."""
LEAST_SNR_DB = -50.0
"""Received SNR of the best client; with it, a band of 10 MHz carries 144 bit/s."""
MOST_SNR_DB = 100.0
"""Received SNR; receivers saturate long before, and a rate of 33 bit/s/Hz has no modulation."""
LEAST_SNR_HZ = 1e3
"""SNR times band of the best client: no band carries more than 1.44 kbit/s with it."""
LEAST_DISTANCE_M = 5.0
"""Distance of the farthest client: smaller cells are rare, kilometres given as metres are not."""
MOST_MBPS = 1e6
"""1 Tbit/s on one link."""
MOST_STEP_SECONDS = 100.0
"""A local step, of one batch; milliseconds given as seconds are longer."""
MOST_ROUND_SECONDS = 1e5
"""A little more than a day."""
MOST_ROUND_JOULES = 1e7
"""Energy of a client in a round: that of a server of 1 kW in three hours, or of 200 telephones'
batteries."""

MIN_BLOCKS, BLOCK_STD_DB = 4, 6.0
"""From so many blocks on, a standard deviation of their levels that fading does not have."""

Function = TypeVar("Function", bound=Callable[..., Any])


def network_notes(network: Network, *, radio: bool = True, computes: bool = True) -> list[str]:
    """One line for each value of a network outside of its range.

    Args:
        network: the network.
        radio: whether its radio channel is used.
        computes: whether its CPU clocks are used.
    """
    notes: list[str] = []
    if radio:
        notes += [*_band("bandwidth_hz", network.bandwidth_hz)]
    if computes and network.devices is not None:
        notes += _measured(network.devices)
    elif computes:
        notes += _clock("cpu_hz", network.cpu_hz)
        notes += _computing("switched_capacitance", network.switched_capacitance, network.cpu_hz)
    if radio:
        notes += [*_power("transmit_power_w", network.transmit_power_w)]
        notes += [*_snr(network), *_distance(network), *_axes(network)]
    return notes


def argument_notes(values: Mapping[str, Any]) -> list[str]:
    """One line for each argument of a solver outside of its range.

    Args:
        values: valid arguments by name; those without a range are ignored.
    """
    arguments = {name: values[name] for name in _RANGED if values.get(name) is not None}
    arrays = {
        name: np.asarray(as_numpy(value), dtype=np.float64) for name, value in arguments.items()
    }
    notes = []
    for name, value in arrays.items():
        if name == "bandwidth_hz":
            notes += [*_band(name, value)]
        elif name == "max_cpu_hz":
            notes += [*_clock(name, value)]
        elif name == "max_power_watts":
            notes += [*_power(name, value, dbm="10 ** (dBm / 10) / 1000")]
    if {"kappa", "max_cpu_hz"} <= arrays.keys():
        notes += _computing("kappa", arrays["kappa"], arrays["max_cpu_hz"])
    snr_hz, name = arrays.get("snr_hz"), "snr_hz"
    if {"gain_per_noise", "max_power_watts"} <= arrays.keys():
        gain, power = arrays["gain_per_noise"], arrays["max_power_watts"]
        snr_hz, name = gain.max(initial=0) * power.max(initial=0), "gain_per_noise x power"
    if snr_hz is not None and "bandwidth_hz" in arrays:
        notes += _snr_hz(name, float(np.max(snr_hz, initial=0)), arrays["bandwidth_hz"])
    return notes


_RANGED = ("bandwidth_hz", "snr_hz", "gain_per_noise", "max_power_watts", "max_cpu_hz", "kappa")
"""Arguments of solvers that have a range."""


def noted(function: Function) -> Function:
    """Let a function warn of arguments outside of their ranges, where a user calls it.

    Calls from within the packages do not warn: runs look at their network once, at the start. A
    network, or the network of a channel draw, replaces the single arguments; the fields of an
    argument ``problem`` join them.
    """
    names = list(inspect.signature(function).parameters)

    @wraps(function)
    def noting(*args: Any, **others: Any) -> Any:
        for name in others.keys() - names:
            raise unknown_keyword(function.__name__, name, names)
        result = function(*args, **others)
        if is_outside(sys._getframe(1)):
            arguments = [*args, *others.values()]
            network = next((e for e in arguments if isinstance(e, Network | ChannelDraw)), None)
            if network is not None:
                whole = network.network if isinstance(network, ChannelDraw) else network
                Notes()(*network_notes(whole))
            else:
                values = dict(zip(names, args, strict=False)) | others
                problem = vars(values["problem"]) if "problem" in values else {}
                Notes()(*argument_notes(values | problem))
        return result

    return cast(Function, noting)


def _band(name: str, values: FloatArray) -> Iterator[str]:
    least = float(np.min(values, initial=np.inf))
    if least < LEAST_BANDWIDTH_HZ:
        yield f"{name} is {least:g} Hz: for {least:g} MHz, give {least * 1e6:.3g}."


def _measured(devices: Devices) -> Iterator[str]:
    seconds = float(devices.step_seconds.max())
    if seconds > MOST_STEP_SECONDS:
        yield (
            f"a step takes up to {seconds:.3g} s on the devices: for milliseconds, divide "
            "seconds_per_sample by 1000."
        )
    bare = [row.name for row in devices.table if row.watts is None]
    if bare:
        yield (
            f"device {bare[0]!r} states no watts or joules_per_sample"
            f"{f', nor do {len(bare) - 1} others' if len(bare) > 1 else ''}: its training costs no "
            "energy."
        )
    watts = float(devices.watts.max())
    if watts > MOST_COMPUTE_W:
        yield f"a device takes {watts:.3g} W while it trains: give watts, not milliwatts."


def _clock(name: str, values: FloatArray) -> Iterator[str]:
    clocks = values[values > 0]
    if not clocks.size:
        return
    least, most = float(clocks.min()), float(clocks.max())
    if least < LEAST_CPU_HZ:
        yield f"{name} is {_span(clocks)} Hz: for {least:.3g} GHz, give {least * 1e9:.3g}."
    if most > MOST_CPU_HZ:
        yield (
            f"{name} is {_span(clocks)} Hz, more than {MOST_CPU_HZ / 1e9:g} GHz, and the energy "
            "grows with its square: divide clocks and cycles by the same number, which keeps the "
            "seconds."
        )


def _computing(name: str, kappa: FloatArray, clocks: FloatArray) -> Iterator[str]:
    most = float(np.max(kappa, initial=0))
    clock = min(float(np.max(clocks, initial=0)), MOST_CPU_HZ)  # a higher one is another note
    watts = most * clock**3
    if watts > MOST_COMPUTE_W:
        yield (
            f"{name} is {most:.3g}: a CPU at {clock:.3g} Hz takes {watts:.2g} W, kappa f^3. Usual "
            "values are 1e-29 to 1e-26."
        )


def _power(name: str, values: FloatArray, dbm: str = "transmit_power_dbm") -> Iterator[str]:
    most = float(np.max(values, initial=0))
    if most > MOST_POWER_W:
        yield (
            f"{name} is {most:.3g}, {float(watts_to_dbm(most)):.3g} dBm, more than handheld "
            f"devices transmit: for {most:.3g} dBm, give {dbm}."
        )


def _snr(network: Network) -> Iterator[str]:
    snr = float(network.mean_snr_db.max(initial=-np.inf))
    if snr > MOST_SNR_DB:
        yield (
            f"the mean SNR at the edge server is up to {snr:.0f} dB, above {MOST_SNR_DB:.0f} dB: "
            "snr_db and path_gain_db together must give the SNR at the receiver."
        )
    if snr < LEAST_SNR_DB:
        yield (
            f"the mean SNR at the edge server is at most {snr:.0f} dB, below {LEAST_SNR_DB:.0f} "
            "dB: see snr_db, the gains, the powers and the band."
        )


def _snr_hz(name: str, snr_hz: float, bandwidth_hz: FloatArray) -> Iterator[str]:
    band = float(np.max(bandwidth_hz, initial=0))
    if 0 < snr_hz < LEAST_SNR_HZ:
        yield (
            f"{name} is at most {snr_hz:.3g} Hz, with which no band carries more than "
            f"{snr_hz / np.log(2):.2g} bit/s: for an SNR in dB over the band, give bandwidth_hz * "
            "10 ** (dB / 10)."
        )
    if band > 0 and snr_hz > band * 10 ** (MOST_SNR_DB / 10):
        yield (
            f"{name} is up to {snr_hz:.3g} Hz, an SNR of {10 * np.log10(snr_hz / band):.0f} dB in "
            f"{band:.3g} Hz, above {MOST_SNR_DB:.0f} dB: it is transmit power x gain / noise "
            "density."
        )


def _distance(network: Network) -> Iterator[str]:
    if network.placement is None:
        return
    farthest = float(np.max(network.placement.distance_m, initial=0))
    if 0 < farthest < LEAST_DISTANCE_M:
        yield (
            f"no client is more than {farthest:.2g} m from its edge server: distances are in "
            "metres, 1000 for a kilometre."
        )


def _axes(network: Network) -> Iterator[str]:
    recorded = network.fading
    if isinstance(recorded, Recorded) and _levels_by_block(recorded):
        yield (
            "recorded channels differ by more than 6 dB from block to block, and hardly from "
            "client to client: if their axes are [users, rx, tx], they are receive arrays. "
            f"{RECEIVE_ARRAYS}"
        )
    if isinstance(recorded, Recorded) and 1 < recorded.blocks < recorded.antennas:
        yield (
            f"recorded channels have {recorded.blocks} blocks and {recorded.antennas} antennas: if "
            "their axes are [antennas, clients, blocks], transpose them."
        )


def _levels_by_block(recorded: Recorded) -> bool:
    """Whether blocks have levels of their own that all clients share, as users' receive arrays.

    That is where most of the variance of powers in dB is between blocks, and none between clients.
    """
    h, gain_db = recorded.h, recorded.gain_db
    if len(h) < MIN_BLOCKS or len(gain_db) < 2:
        return False
    power_db = gain_db + 10 * np.log10((h.real**2 + h.imag**2).mean(-1))
    blocks, clients = power_db.mean(1).var(), power_db.mean(0).var()
    return bool(blocks > BLOCK_STD_DB**2 and blocks > 10 * clients and blocks > power_db.var() / 2)


def _span(values: FloatArray) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
