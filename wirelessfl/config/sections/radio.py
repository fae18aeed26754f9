"""Settings of the radio channel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from channels.decibels import (
    LARGEST_DB,
    LARGEST_NOISE_DBM_PER_HZ,
    LARGEST_POWER_W,
    THERMAL_DBM_PER_HZ,
)
from wirelessfl.config.sections.section import Section
from wirelessfl.needs import BUILT, CELLS, DRAWN, RADIO, Needs, Suits, without
from wirelessfl.uplinks.uplink import Coherence

Gain = Annotated[float, Field(ge=-LARGEST_DB, le=LARGEST_DB)]
FIXED_SNR = (
    DRAWN,
    Needs(
        lambda run, _: not run.layout.positions,
        'conflicts with layout "{run.layout.title}", whose distances give the SNR: choose layout '
        '"section-vi-c"',
    ),
)
NOISE = Needs(
    lambda run, _: run.channel is not None or run.layout.positions,
    'conflicts with layout "{run.layout.title}", which fixes the SNR: choose layout "disc", '
    '"hexagonal" or "file"',
)

IN_WATTS = Suits(
    lambda _, own: own.transmit_power_w <= LARGEST_POWER_W,
    f"transmit_power_w is {{own.transmit_power_w:g}}: give at most {LARGEST_POWER_W:g} W (40 dBm). "
    "For dBm, give transmit_power_dbm",
)
GAINS = Suits(
    lambda _, own: own.path_gain_db is None or own.path_gain_db[0] <= own.path_gain_db[1],
    "path_gain_db is {own.path_gain_db}: give LOW <= HIGH, in dB",
)


class RadioSection(Section):
    """Band, powers, gains and noise; defaults from Section VI-C of the HIST paper."""

    bandwidth_hz: Annotated[float, BUILT, RADIO] = Field(
        9e6, gt=0, description="bandwidth per cell, Hz"
    )
    antennas: Annotated[int, BUILT, RADIO, DRAWN] = Field(
        10, ge=1, le=1024, description="antennas per edge server"
    )
    antenna_correlation: Annotated[float, BUILT, RADIO, DRAWN] = Field(
        0.0, ge=0, lt=1, description="correlation of neighbouring antennas"
    )
    transmit_power_w: Annotated[float, BUILT, RADIO, without("transmit_power_dbm"), IN_WATTS] = (
        Field(0.1, gt=0, description="maximum transmit power per client, W (snr_db is at 0.1 W)")
    )
    transmit_power_dbm: Annotated[float | None, BUILT, RADIO] = Field(
        None, ge=-100, le=40, description="transmit power per client, dBm (default: 20, i.e. 0.1 W)"
    )
    snr_db: Annotated[float | None, BUILT, RADIO, FIXED_SNR] = Field(
        None,
        description="transmit SNR at 20 dBm, dB (default: 30 slow, 40 fast cells)",
    )
    path_gain_db: Annotated[tuple[Gain, Gain] | None, BUILT, RADIO, FIXED_SNR, GAINS] = Field(
        None, description="range of mean channel gains, dB, e.g. --path-gain-db=-20,20 (default: 0)"
    )
    noise_figure_db: Annotated[float, BUILT, RADIO, NOISE] = Field(
        5.0, ge=0, le=60, description="noise figure of the edge servers' receivers, dB"
    )
    noise_dbm_per_hz: Annotated[float, BUILT, RADIO, NOISE] = Field(
        THERMAL_DBM_PER_HZ,
        ge=-LARGEST_DB,
        le=LARGEST_NOISE_DBM_PER_HZ,
        description="density of the thermal noise, dBm/Hz",
    )
    channel: Annotated[Path | None, BUILT, RADIO] = Field(
        None,
        description="recorded channels, .npz or .mat (default: drawn)",
    )
    coherence: Annotated[Coherence | None, CELLS, RADIO] = Field(
        None, description="channel coherence interval (default: the uplink's)"
    )
