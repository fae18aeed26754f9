"""Builds the configured network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import channels
from channels import Devices, Network, even_cells, section_vi_c
from channels.arrays import FloatArray, IntArray
from channels.association import PLACED, Association
from channels.number_file import read_numbers
from channels.recorded import Recorded
from channels.streams import Stream
from channels.validation import RECEIVE_ARRAYS
from wirelessfl.air.radio import Placed
from wirelessfl.base.errors import ConfigError
from wirelessfl.config.choices import Choices
from wirelessfl.config.named import own_devices, own_network
from wirelessfl.config.sections import NetworkSection

DEFAULT_HZ = 1e9
"""CPU speed of clients whose steps take ``step_seconds``."""
FASTEST_PAIRS = 20_000
"""Maximum number of pairs of clients and cells that ``fastest`` compares: some ten seconds."""


def build_network(settings: NetworkSection, stream: Stream, choices: Choices) -> Network:
    """The network that the settings name; otherwise build one with the configured links.

    By default the CPUs are those of Section VI-C.

    Args:
        settings: cells, clients and their radio.
        stream: randomness of positions, gains and CPU speeds.
        choices: layout, path loss and fading.

    Raises:
        ConfigError: the settings conflict, or a file of positions or channels is wrong.
    """
    if settings.network is not None:
        return own_network(settings.network, stream.seed)
    cells = settings.cells or 1
    if settings.slowdown != 1 and cells == 1:
        raise ConfigError(
            f"slowdown={settings.slowdown:g} conflicts with cells=1: it applies to the first half "
            "of several cells. Give --cells 2 or more, or leave slowdown out."
        )
    slower = np.where(np.arange(cells) < cells // 2, settings.slowdown, 1.0)
    try:
        network = _linked(settings, stream, choices, settings.bandwidth_hz / slower)
        if settings.devices is not None:
            table = own_devices(settings.devices)
            places = stream.child("network", "devices")
            return network.with_devices(Devices.drawn(table, network.clients, places))
        cpu_hz: Any = _cpu_hz(settings, stream, network.cell_of) / slower[network.cell_of]
        return replace(network, cpu_hz=cpu_hz)
    except ConfigError:
        raise
    except (ValueError, TypeError) as error:
        raise ConfigError(f"network: {error}") from error


def _linked(
    settings: NetworkSection, stream: Stream, choices: Choices, bandwidth_hz: FloatArray
) -> Network:
    """The network with the configured links, and placeholders for CPU speeds."""
    cells, clients, cycles = settings.cells or 1, settings.clients, settings.cycles_per_step
    if settings.step_seconds is not None:
        cycles = DEFAULT_HZ * settings.step_seconds
    power = settings.transmit_power_w
    if settings.transmit_power_dbm is not None:
        power = float(channels.dbm_to_watts(settings.transmit_power_dbm))
    common: dict[str, Any] = {
        "cpu_hz": DEFAULT_HZ,
        "bandwidth_hz": bandwidth_hz,
        "cycles_per_step": cycles,
        "transmit_power_w": power,
        "switched_capacitance": settings.switched_capacitance,
        "interference_watts": _interference(settings.interference_watts),
    }
    noise: dict[str, Any] = {
        "noise_figure_db": settings.noise_figure_db,
        "noise_dbm_per_hz": settings.noise_dbm_per_hz,
    }
    if settings.channel is not None:
        recorded = Recorded.read(settings.channel)
        if recorded.clients != clients:
            shape = recorded.blocks, recorded.clients, recorded.antennas
            axes = f"channel={settings.channel} has [blocks, clients, antennas] = {[*shape]}"
            if clients in shape:
                arrays = f" {RECEIVE_ARRAYS}" if recorded.blocks == clients else ""
                raise ConfigError(
                    f"{axes}, and clients is {clients}: permute its axes. One block is "
                    f"[1, clients, antennas].{arrays}"
                )
            raise ConfigError(
                f"{axes}, and clients is {clients}: give --clients {recorded.clients}, or a file "
                f"of {clients}."
            )
        return Network(even_cells(clients, cells), **recorded.links, **noise, **common)
    fading: Any = channels.Rayleigh() if choices.fading is None else choices.fading.build()
    if settings.doppler_hz is not None:
        fading = channels.Doppler(
            fading, settings.doppler_hz, settings.block_seconds, settings.doppler_model
        )
    if settings.delay_spread_ns is not None:
        fading = channels.DelayProfile(
            1e-9 * settings.delay_spread_ns, settings.delay_profile, settings.subcarriers, fading
        )
    common |= {
        "antennas": settings.antennas,
        "fading": fading,
        "antenna_correlation": settings.antenna_correlation,
    }
    layout, path_loss = choices.layout, choices.path_loss
    if not isinstance(layout, Placed) or path_loss is None:
        return _with_snr(settings, stream, common)
    try:
        return channels.placed_network(
            layout.build(),
            path_loss.build(),
            cells=cells,
            clients=clients,
            stream=stream.child("network"),
            antenna_gain_db=layout.antenna_gain_db,
            reuse_factor=layout.reuse_factor,
            interferers=layout.interferers or "one",
            association=_association(layout, common | noise),
            mobility=None if choices.mobility is None else choices.mobility.build(),
            block_seconds=settings.block_seconds,
            handover=settings.handover,
            **noise,
            **common,
        )
    except ValueError as error:
        # Only the values are passed on, so their errors cannot name the file.
        files = {
            "association": layout.association,
            "interference_watts": settings.interference_watts,
        }
        for name, file in files.items():
            if isinstance(file, Path) and str(error).startswith((f"{name} ", f"{name}[")):
                raise ConfigError(f"{file}: {error}") from error
        raise


def _interference(watts: float | Path | None) -> float | FloatArray | None:
    """Interference of a setting: a number, or [blocks, cells or clients] of a file."""
    if not isinstance(watts, Path):
        return watts
    if not watts.is_file():
        raise ConfigError(
            f"interference_watts={watts} is neither a number nor a file: give watts, or a CSV file "
            "with a line per block and a column per cell or client."
        )
    return read_numbers(watts)


def _association(layout: Placed, radio: Mapping[str, Any]) -> Association:
    """The rule of a layout, as ``channels.placed_network`` takes it."""
    if isinstance(layout.association, Path):
        if not layout.association.is_file():
            raise ConfigError(
                f"association={layout.association} is neither a file nor placed, nearest, "
                "strongest or fastest: choose one."
            )
        numbers = read_numbers(layout.association)
        if numbers.shape[1] > 1:
            raise ConfigError(
                f"association={layout.association} has {numbers.shape[1]} columns: give the cell "
                "of each client, one a line."
            )
        return numbers[:, 0]
    return (
        partial(_fastest, radio)
        if layout.association == "fastest"
        else layout.association or PLACED
    )


def _fastest(radio: Mapping[str, Any], gain_db: FloatArray) -> IntArray:
    """Cells [clients] of the shortest round of equal uploads in equal bands at mean gains."""
    from solvers import assign_cells

    if gain_db.size > FASTEST_PAIRS:
        raise ConfigError(
            f"association=fastest compares {len(gain_db)} clients in {gain_db.shape[1]} cells, "
            f'above {FASTEST_PAIRS} pairs: choose "strongest".'
        )
    density = channels.dbm_to_watts(radio["noise_dbm_per_hz"] + radio["noise_figure_db"])
    snr_hz = radio["transmit_power_w"] * radio["antennas"] * 10 ** (gain_db / 10) / density
    solution = assign_cells(1e6, 0.0, snr_hz, radio["bandwidth_hz"], min_clients=1)
    if solution.value is None:
        raise ConfigError(f"association=fastest has no solution: {solution.message}.")
    return np.asarray(solution.value)


def _with_snr(settings: NetworkSection, stream: Stream, common: Mapping[str, Any]) -> Network:
    """The network of Section VI-C, or with the configured SNR and path gains."""
    base = section_vi_c(settings.cells or 1, settings.clients, stream=stream.child("network"))
    snr_db = base.snr_db
    if settings.snr_db is not None:
        snr_db = np.full(settings.clients, settings.snr_db)
    low, high = settings.path_gain_db or (0.0, 0.0)
    draw = stream.child("network", "path gain").generator()
    gains = low if low == high else draw.uniform(low, high, settings.clients)
    return Network.from_snr(base.cell_of, snr_db=snr_db, path_gain_db=gains, **common)


def _cpu_hz(settings: NetworkSection, stream: Stream, cell_of: IntArray) -> FloatArray:
    clients, cells = settings.clients, settings.cells or 1
    if settings.step_seconds is not None:
        return np.full(clients, DEFAULT_HZ)
    if settings.cpu_hz is not None:
        low, high = settings.cpu_hz
        return stream.child("network", "cpu").generator().uniform(low, high, clients)
    base = section_vi_c(cells, clients, stream=stream.child("network"))
    if np.array_equal(base.cell_of, cell_of):
        return base.cpu_hz
    # Cells of a file have any sizes: a client is as fast as its cell, not as in cells of one size.
    fast = base.cell_of >= cells // 2, cell_of >= cells // 2
    return np.asarray(base.cpu_hz / np.where(fast[0], 2, 1) * np.where(fast[1], 2, 1))
