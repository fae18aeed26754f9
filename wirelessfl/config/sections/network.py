"""Settings of cells, clients and their radio."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wirelessfl.config.sections.base import Section
from wirelessfl.uplinks.base import Coherence


class NetworkSection(Section):
    """Cells, clients and their radio; the defaults are those of Section VI-C of the HIST paper."""

    cells: int | None = Field(None, ge=1, description="cells (default: 4, or 1 for a star)")
    clients: int = Field(60, ge=1, description="clients in all cells together")
    bandwidth_hz: float = Field(9e6, gt=0, description="bandwidth of a cell, in Hz")
    antennas: int = Field(10, ge=1, le=1024, description="antennas of an edge server")
    fading: Literal["rayleigh", "rician"] = Field("rayleigh", description="block fading")
    rician_k_db: float = Field(6.0, description="Rician K factor, in dB")
    antenna_correlation: float = Field(
        0.0, ge=0, lt=1, description="correlation of neighbouring antennas"
    )
    snr_db: float | None = Field(
        None, description="transmit SNR of all clients, in dB (default: 30 and 40 by half)"
    )
    cpu_hz: tuple[float, float] | None = Field(
        None, description="range LOW,HIGH of CPU speeds, in Hz (default: 1-2 and 2-4 GHz by half)"
    )
    slowdown: float = Field(
        1.0,
        ge=1,
        description="factor by which the first half of the cells is slower: CPU speeds and "
        "bandwidth are divided by it",
    )
    coherence: Coherence | None = Field(
        None, description="how long a channel draw lasts (default: round, the uplink's own)"
    )
    cycles_per_step: float = Field(1e6, gt=0, description="CPU cycles of a full-model step")
    cycles_per_flop: float | None = Field(
        None,
        gt=0,
        description="CPU cycles per FLOP: a full-model step takes this times its FLOPs, counted on "
        "the model at the batch size (default: --cycles-per-step)",
    )
    step_seconds: float | None = Field(
        None,
        gt=0,
        description="seconds of a full-model step of every client, instead of cycles over CPU "
        "speed (default: cycles)",
    )
    transmit_power_w: float = Field(0.1, gt=0, description="transmit power of a client, in W")
    switched_capacitance: float = Field(
        1e-28, ge=0, description="kappa of kappa f^2 joules a cycle"
    )
    path_gain_db: tuple[float, float] | None = Field(
        None,
        description="range LOW,HIGH of mean channel powers, in dB, e.g. --path-gain-db=-20,20 "
        "(default: 0)",
    )
    delays: Literal["wireless", "shifted-exponential"] | None = Field(
        None,
        description="latency model of schedules buffered and simultaneous: CPU cycles and a "
        "shared band, or one draw from request to update (default: wireless)",
    )
    delay_scale: float = Field(
        0.5,
        gt=0,
        description="of shifted-exponential: seconds a unit of the published relative step times, "
        "where --step-seconds does not say beta itself",
    )
    availability: float = Field(
        1.0,
        gt=0,
        le=1,
        description="of schedule simultaneous: fraction of clients available in a round, drawn "
        "anew in each (asynchronous requests do not depend on it, see docs/tasks.md)",
    )
    busy_clients: int | None = Field(
        None,
        ge=1,
        description="of schedule buffered: maximum number of clients with requests; further "
        "requests go to these",
    )
    drop_out: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="of schedules buffered and simultaneous: probability that a client drops out "
        "of a training",
    )
    downlink_mbps: float | None = Field(
        None, gt=0, description="rate to each client, in Mbit/s (default: takes no time)"
    )
    backhaul_mbps: float | None = Field(
        None, gt=0, description="rate edge server to cloud, in Mbit/s (default: takes no time)"
    )
