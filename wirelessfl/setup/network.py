"""Builds the configured network."""

from __future__ import annotations

import numpy as np

from channels import Fading, Network, Rayleigh, even_cells, section_vi_c
from channels.streams import Stream
from wirelessfl.config.sections import NetworkSection
from wirelessfl.errors import ConfigError
from wirelessfl.fading import FadingModel


def build_network(settings: NetworkSection, stream: Stream, fading: FadingModel | None) -> Network:
    """Build the network of Section VI-C of the HIST paper, modified by the settings.

    Args:
        settings: cells, clients and their radio.
        stream: randomness of CPU speeds and gains.
        fading: fading of the channels; None without a radio channel.

    Raises:
        ConfigError: the settings conflict.
    """
    cells = settings.cells or 1
    if settings.slowdown != 1 and cells == 1:
        raise ConfigError(
            f"slowdown={settings.slowdown:g} conflicts with cells=1: it applies to the first half "
            "of several cells. Give --cells 2 or more, or leave slowdown out."
        )
    base = section_vi_c(cells, settings.clients, stream=stream.child("network"))
    cpu_hz, snr_db, cycles = base.cpu_hz, base.snr_db, settings.cycles_per_step
    if settings.cpu_hz is not None:
        low, high = settings.cpu_hz
        cpu_hz = stream.child("network", "cpu").generator().uniform(low, high, settings.clients)
    if settings.step_seconds is not None:
        cpu_hz, cycles = np.full(settings.clients, 1e9), 1e9 * settings.step_seconds
    if settings.snr_db is not None:
        snr_db = np.full(settings.clients, settings.snr_db)
    low, high = settings.path_gain_db or (0.0, 0.0)
    draw = stream.child("network", "path gain").generator()
    gains = low if low == high else draw.uniform(low, high, settings.clients)
    slower = np.where(np.arange(cells) < cells // 2, settings.slowdown, 1.0)
    faded: Fading = Rayleigh() if fading is None else fading.build()
    try:
        cell_of = even_cells(settings.clients, cells)
        return Network.from_snr(
            cell_of=cell_of,
            cpu_hz=cpu_hz / slower[cell_of],
            snr_db=snr_db,
            bandwidth_hz=settings.bandwidth_hz / slower,
            antennas=settings.antennas,
            fading=faded,
            antenna_correlation=settings.antenna_correlation,
            path_gain_db=gains,
            cycles_per_step=cycles,
            transmit_power_w=settings.transmit_power_w,
            switched_capacitance=settings.switched_capacitance,
        )
    except ValueError as error:
        raise ConfigError(f"network: {error}") from error
