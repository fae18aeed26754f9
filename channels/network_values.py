"""Arguments of a network: checked, with defaults filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.by_client import ByClient, Listed, stored_by_cell
from channels.decibels import LARGEST_DB, gains_in_range, noise_power_dbm, powers_in_range
from channels.devices import STEP_CYCLES, Devices, DeviceTable, devices_of
from channels.fading import Fading, Rayleigh, check_correlation, correlation_root
from channels.interference import (
    ActiveInterference,
    Interference,
    InterferenceWatts,
    external_watts,
)
from channels.moving import Moving
from channels.placement import Placement
from channels.recorded import Recorded
from channels.validation import checked_cells, checked_part, in_range, shown

DEFAULT_POWER_W = 0.1
"""Default transmit power of a client, 20 dBm, at which ``Network.from_snr`` fixes the gains."""
DEFAULT_DBM = 20.0
"""The same power in dBm."""
DEFAULT_KAPPA = 1e-28
"""Default of ``switched_capacitance``."""


def network_values(
    cell_of: ArrayLike,
    *,
    cpu_hz: ArrayLike | None,
    gain_db: ArrayLike | None,
    transmit_power_w: ArrayLike,
    bandwidth_hz: ArrayLike,
    noise_dbm_per_hz: float,
    noise_figure_db: float,
    antennas: int,
    fading: Fading | None,
    antenna_correlation: complex,
    interference: Interference | None,
    interference_watts: InterferenceWatts,
    placement: Placement | None,
    cycles_per_step: float,
    switched_capacitance: ArrayLike | None,
    part: ArrayLike | None,
    devices: DeviceTable | None,
    path_gain_db: ArrayLike,
    _snr_db: ArrayLike | None,
    _noise_dbm: FloatArray | None,
) -> dict[str, Any]:
    """Values of a network's fields, from its arguments; see :class:`channels.Network`."""
    if part is None:
        cells = checked_cells(cell_of)
        cell_count = int(cells[-1]) + 1
    else:
        cell_count = np.size(bandwidth_hz)
        cells, part = checked_part(cell_of, part, cell_count)
    fading = Rayleigh() if fading is None else fading
    if not isinstance(fading, Fading):
        raise TypeError(f"fading is {shown(fading)}: give a model, e.g. Rayleigh() or Rician().")
    if isinstance(fading, Recorded) and part is None:
        fading.check_fits(len(cells))
    clients = ("clients", len(cells))
    band = in_range("bandwidth_hz", bandwidth_hz, ("cells", cell_count), above=0)
    noise = noise_power_dbm(band, noise_figure_db, noise_dbm_per_hz)
    path_gain = in_range("path_gain_db", path_gain_db, clients, limit=LARGEST_DB)
    if gain_db is not None:
        gain = gains_in_range(gain_db, clients)
        if placement is not None and part is None:
            placement.check_gains(gain)
        snr, path_gain = gain + DEFAULT_DBM - noise[cells], 0 * gain
        _noise_dbm = noise
    elif _snr_db is not None:
        snr = in_range("snr_db", _snr_db, clients)
    else:
        raise TypeError(
            "gain_db is missing: give mean channel gains in dB, or build the network with "
            "Network.from_snr."
        )
    if _noise_dbm is not None and len(_noise_dbm) != cell_count:
        raise ValueError(
            f"cell_of has {cell_count} cells, and the SNRs hold for {len(_noise_dbm)}: to "
            "change the number of cells, build a new network."
        )
    power = powers_in_range(transmit_power_w, clients)
    if interference is not None and part is None:
        interference.check_fits(clients=len(cells), cells=cell_count)
        interference = replace(interference, transmit_power_w=power)
    if isinstance(interference, ActiveInterference) and isinstance(fading, Recorded):
        raise ValueError(
            "interference of active clients needs channels that are drawn, and fading is recorded: "
            "give Interference, of mean gains."
        )
    watts = external_watts(interference_watts, cell_count, len(cells), part)
    if np.ndim(watts) == 3:  # type: ignore[arg-type]
        _check_parts(np.shape(watts)[2], interference, fading)  # type: ignore[arg-type]
    by_client = {
        "cell_of": cells,
        "transmit_power_w": power,
        "path_gain_db": path_gain,
        "_snr_db": snr,
    }
    clocks: dict[str, ByClient] = {}
    if devices is not None:
        devices = devices_of(devices, len(cells))
        clocks = _clocks(devices, cpu_hz, switched_capacitance, cycles_per_step)
    elif cpu_hz is None:
        raise TypeError("cpu_hz is missing: give CPU cycles per second, or devices.")
    else:
        kappa = DEFAULT_KAPPA if switched_capacitance is None else switched_capacitance
        by_client["cpu_hz"] = in_range("cpu_hz", cpu_hz, clients, above=0)
        by_client["switched_capacitance"] = in_range(
            "switched_capacitance", kappa, clients, min_value=0
        )
    ends = np.searchsorted(cells, np.arange(cell_count), side="right")
    values = {
        "bandwidth_hz": band,
        "noise_dbm_per_hz": float(noise_dbm_per_hz),
        "noise_figure_db": float(noise_figure_db),
        "antennas": antennas,
        "fading": fading,
        "antenna_correlation": antenna_correlation,
        "interference": interference,
        "interference_watts": watts,
        "placement": placement,
        "cycles_per_step": float(in_range("cycles_per_step", cycles_per_step, ("", 1), above=0)[0]),
        "part": part,
        "devices": devices,
        "_noise_dbm": noise if _noise_dbm is None else _noise_dbm,
        "_ends": ends,
        **{
            name: stored_by_cell(value, ends) if part is None else Listed(value)
            for name, value in by_client.items()
        },
        **clocks,
    }
    check_correlation("antenna_correlation", antenna_correlation)
    correlation_root(antennas, antenna_correlation)  # raise errors here, not in a draw
    return values


def _clocks(
    devices: Devices,
    cpu_hz: ArrayLike | None,
    switched_capacitance: ArrayLike | None,
    cycles_per_step: float,
) -> dict[str, ByClient]:
    """Clocks and kappas with which steps take the seconds and joules of the devices."""
    values = {"cpu_hz": devices.clocks, "switched_capacitance": devices.switched_capacitance}
    # Copies of a network state the values that it has.
    stated = {"cpu_hz": cpu_hz, "switched_capacitance": switched_capacitance}
    for name, value in stated.items():
        if value is not None and not np.array_equal(value, values[name].whole()):
            raise ValueError(f"{name} conflicts with devices, which replace it: omit it.")
    if cycles_per_step != STEP_CYCLES:
        raise ValueError(
            f"cycles_per_step is {cycles_per_step:g} and conflicts with devices, whose steps take "
            "measured seconds: omit it."
        )
    return dict(values)


def _check_parts(number: int, interference: Interference | None, fading: Fading | None) -> None:
    """Raise unless interference by subcarrier fits other interference and the subcarriers."""
    if interference is not None:
        raise ValueError(
            "interference_watts has values of subcarriers, and interference is that of clients of "
            "other cells, which spreads over the band: give watts per cell, or no interference."
        )
    small_scale = fading.fading if isinstance(fading, Moving) else fading
    subcarriers = getattr(small_scale, "subcarriers", 1)
    if subcarriers not in (1, number):
        raise ValueError(
            f"interference_watts has {number} subcarriers, and the channels have {subcarriers}: "
            "give as many, or channels that are flat over the band."
        )
