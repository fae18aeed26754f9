"""Settings of cells, clients and their radio links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from channels.decibels import LARGEST_DB, LARGEST_NOISE_DBM_PER_HZ, THERMAL_DBM_PER_HZ
from wirelessfl.config.sections.base import Section
from wirelessfl.import_paths import absolute
from wirelessfl.uplinks.base import Coherence

Gain = Annotated[float, Field(ge=-LARGEST_DB, le=LARGEST_DB)]


class NetworkSection(Section):
    """Cells, clients and radio links; defaults from Section VI-C of the HIST paper."""

    cells: int | None = Field(None, ge=1, description="number of cells (default: 4)")
    clients: int = Field(60, ge=1, le=10**14, description="total number of clients")
    bandwidth_hz: float = Field(9e6, gt=0, description="bandwidth per cell, Hz")
    antennas: int = Field(10, ge=1, le=1024, description="antennas per edge server")
    antenna_correlation: float = Field(
        0.0, ge=0, lt=1, description="correlation of neighbouring antennas"
    )
    snr_db: float | None = Field(
        None,
        description="transmit SNR at 20 dBm, dB (default: 30 slow, 40 fast cells)",
    )
    cpu_hz: tuple[float, float] | None = Field(
        None, description="CPU speeds, Hz (default: 1-2 GHz in slow, 2-4 in fast cells)"
    )
    slowdown: float = Field(
        1.0,
        ge=1,
        description="slowdown of CPUs and bandwidth in half the cells",
    )
    coherence: Coherence | None = Field(
        None, description="channel coherence interval (default: the uplink's)"
    )
    cycles_per_step: float = Field(1e6, gt=0, description="CPU cycles per step of the full model")
    cycles_per_flop: float | None = Field(
        None,
        gt=0,
        le=1e30,
        description="CPU cycles per counted FLOP of a full-model step (default: not counted)",
    )
    step_seconds: float | None = Field(
        None,
        gt=0,
        le=1e15,
        description="seconds per full-model step (default: CPU cycles / CPU speed)",
    )
    transmit_power_dbm: float | None = Field(
        None, ge=-100, le=40, description="transmit power per client, dBm (default: 20, i.e. 0.1 W)"
    )
    transmit_power_w: float = Field(
        0.1, gt=0, description="maximum transmit power per client, W (snr_db is at 0.1 W)"
    )
    noise_figure_db: float = Field(
        5.0, ge=0, le=60, description="noise figure of the edge servers' receivers, dB"
    )
    noise_dbm_per_hz: float = Field(
        THERMAL_DBM_PER_HZ,
        ge=-LARGEST_DB,
        le=LARGEST_NOISE_DBM_PER_HZ,
        description="density of the thermal noise, dBm/Hz",
    )
    channel: Path | None = Field(
        None,
        description="recorded channels, .npz or .mat (default: drawn)",
    )
    switched_capacitance: float = Field(
        1e-28, ge=0, le=1, description="kappa: a CPU cycle at f Hz uses kappa f^2 joules"
    )
    path_gain_db: tuple[Gain, Gain] | None = Field(
        None, description="range of mean channel gains, dB, e.g. --path-gain-db=-20,20 (default: 0)"
    )
    availability: float = Field(
        1.0, gt=0, le=1, description="fraction of clients available in each round"
    )
    busy_clients: int | None = Field(
        None,
        ge=1,
        description="maximum number of busy clients; further requests are queued (default: all)",
    )
    drop_out: float = Field(
        0.0, ge=0, lt=1, description="probability that a client fails to return a requested update"
    )
    network: str | None = Field(None, description="own network, module:function (default: drawn)")
    downlink_mbps: float | None = Field(
        None, gt=0, description="rate to each client, Mbit/s (default: no delay)"
    )
    backhaul_mbps: float | None = Field(
        None, gt=0, description="rate from edge server to cloud, Mbit/s (default: no delay)"
    )

    @field_validator("network")
    @classmethod
    def _absolute(cls, network: str | None) -> str | None:
        # A run may be resumed from another working directory.
        return absolute(network)  # type: ignore[no-any-return]
