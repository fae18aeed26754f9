"""Settings of cells and clients: number, radio channel, CPUs, devices and behaviour."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from channels.decibels import (
    LARGEST_DB,
    LARGEST_NOISE_DBM_PER_HZ,
    LARGEST_POWER_W,
    THERMAL_DBM_PER_HZ,
)
from channels.delay_profile import LARGEST_SUBCARRIERS, Profile
from channels.delay_profile import LONGEST_SECONDS as LONGEST_DELAY_SECONDS
from channels.doppler import LARGEST_HZ, LONGEST_SECONDS
from wirelessfl.air.radio import COMMON_BLOCKS
from wirelessfl.air.uplinks.uplink import Coherence
from wirelessfl.algorithms.algorithm import ServerMemory
from wirelessfl.base.import_paths import absolute, expanded, has_separator, is_import_path
from wirelessfl.base.needs import (
    BUILT,
    CELLS,
    DRAWN,
    GIVEN,
    LINKS,
    ONE_SERVER,
    RADIO,
    REQUESTS,
    ROUNDS,
    TASK_ROUNDS,
    TASKS,
    Fits,
    Needs,
    Suits,
    beside,
    without,
)
from wirelessfl.config.sections.section import Section, frozen
from wirelessfl.engine.selection import RandomSelection


def _unless_beta(need: Needs) -> Needs:
    """The need of ``step_seconds``, which is beta of a latency model that replaces links."""
    return Needs(lambda run, owner: not run.radio or need.met(run, owner), need.reason)


STEP = tuple(map(_unless_beta, BUILT))
SPEEDS = Suits(
    lambda _, owner: owner.cpu_hz is None or 0 < owner.cpu_hz[0] <= owner.cpu_hz[1],
    "cpu_hz is {owner.cpu_hz}: give 0 < LOW <= HIGH, in Hz",
)
ESTIMATES = Needs(
    lambda run, _: getattr(run.settings.uplink, "convention", None) != "majority",
    'conflicts with convention="majority", which needs no channel estimates: choose '
    'convention "physical"',
)
FEWER = Fits(
    lambda run, owner: not run.settings.clients_known or (owner.busy_clients or 0) <= owner.clients,
    "exceeds the {owner.clients} clients: lower it",
)
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
    lambda _, owner: owner.transmit_power_w <= LARGEST_POWER_W,
    f"transmit_power_w is {{owner.transmit_power_w:g}}: give at most {LARGEST_POWER_W:g} W "
    "(40 dBm). For dBm, give transmit_power_dbm",
)
GAINS = Suits(
    lambda _, owner: owner.path_gain_db is None or owner.path_gain_db[0] <= owner.path_gain_db[1],
    "path_gain_db is {owner.path_gain_db}: give LOW <= HIGH, in dB",
)

IN_TIME = Needs(
    lambda run, owner: owner.doppler_hz is not None or run.settings.mobility is not None,
    "needs doppler_hz or mobility: set one of them",
)


HANDOVER = (
    CELLS,
    ROUNDS,
    Needs(
        lambda run, _: not issubclass(run.local, ServerMemory),
        'conflicts with local="{run.local.title}", whose edge servers keep means over the clients '
        'of their cell: choose another algorithm, such as local "fedavg"',
    ),
    Needs(
        lambda run, _: type(run.settings.select) in (RandomSelection, type(None)),
        'conflicts with select="{run.settings.select.title}", which compares the clients of the '
        'cells in which they were placed: choose select "random"',
    ),
)
"""What handover needs of a run."""
MOVES = Needs(
    lambda run, _: run.settings.mobility is not None and run.settings.mobility.moves,
    'needs clients that move: set mobility "waypoint" or "trace"',
)
NOT_REUSED = Needs(
    lambda run, _: getattr(run.settings.layout, "reuse_factor", None) is None,
    "conflicts with reuse_factor={run.settings.layout.reuse_factor}, which is the interference of "
    "the clients that were placed in other cells: choose one of them, or give interference_watts",
)
MEASURED = Needs(
    lambda _, owner: owner.devices is None,
    "conflicts with devices={owner.devices}, which replaces it: choose one of them",
)


def _named_devices(name: str | None) -> str | None:
    """The name of devices, with an absolute path if it is a file, see ``absolute``."""
    if name is None or is_import_path(name):
        return None if name is None else str(absolute(name))
    file = expanded(name)
    return str(file.absolute()) if file.suffix or has_separator(name) else name


@frozen
class NetworkSection(Section):
    """Cells and clients, their radio links, devices and behaviour.

    Defaults of radio and devices are those of Section VI-C of the HIST paper.
    """

    cells: Annotated[int | None, BUILT, CELLS] = Field(
        None, ge=1, description="number of cells (default: 4)"
    )
    clients: Annotated[int, BUILT] = Field(
        60, ge=1, le=10**14, description="total number of clients"
    )
    # An absolute path, since a run may be resumed from another working directory.
    network: Annotated[str | None, GIVEN, AfterValidator(absolute)] = Field(
        None, description="own network, module:function (default: drawn)"
    )
    downlink_mbps: Annotated[float | None, LINKS] = Field(
        None, gt=0, description="rate to each client, Mbit/s (default: no delay)"
    )
    backhaul_mbps: Annotated[float | None, CELLS] = Field(
        None, gt=0, description="rate from edge server to cloud, Mbit/s (default: no delay)"
    )
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
    interference_watts: Annotated[float | Path | None, BUILT, RADIO, COMMON_BLOCKS] = Field(
        None,
        description="interference at edge servers, W, or CSV of [blocks, cells] or "
        "[blocks, clients] (default: none)",
    )
    channel: Annotated[Path | None, BUILT, RADIO] = Field(
        None,
        description="recorded channels, .npz or .mat (default: drawn)",
    )
    coherence: Annotated[Coherence | None, CELLS, RADIO] = Field(
        None, description="how long a channel lasts, its coherence (default: the uplink's)"
    )
    doppler_hz: Annotated[float | None, BUILT, RADIO, DRAWN, COMMON_BLOCKS] = Field(
        None,
        ge=0,
        le=LARGEST_HZ,
        description="Doppler shift v f_c / c of the fading, Hz (default: independent blocks)",
    )
    doppler_model: Annotated[Literal["jakes", "ar1"], BUILT, RADIO, DRAWN, beside("doppler_hz")] = (
        Field("jakes", description="correlation of fading: J0 at all lags, or an AR(1) process")
    )
    block_seconds: Annotated[float, BUILT, RADIO, DRAWN, IN_TIME] = Field(
        1.0,
        gt=0,
        le=LONGEST_SECONDS,
        description="seconds from one channel block, a round or edge round, to the next",
    )
    delay_spread_ns: Annotated[float | None, BUILT, RADIO, DRAWN] = Field(
        None,
        gt=0,
        le=1e9 * LONGEST_DELAY_SECONDS,
        description="delay spread (rms) of the fading, ns (default: flat over the band)",
    )
    delay_profile: Annotated[Profile, BUILT, RADIO, DRAWN, beside("delay_spread_ns")] = Field(
        "exponential", description="power-delay profile: exponential, or one of 3GPP TR 38.901"
    )
    subcarriers: Annotated[int, BUILT, RADIO, DRAWN, beside("delay_spread_ns")] = Field(
        64,
        ge=1,
        le=LARGEST_SUBCARRIERS,
        description="number of parts of the band with channels of their own; 1: flat",
    )
    handover: Annotated[
        Literal["none", "strongest"], BUILT, RADIO, DRAWN, HANDOVER, MOVES, NOT_REUSED
    ] = Field(
        "none",
        description="cell that serves a client that moves: its own, or that of the strongest mean "
        "gain in each round",
    )
    pilot_symbols: Annotated[int | None, RADIO, ESTIMATES] = Field(
        None,
        ge=0,
        le=10**9,
        description="pilot symbols per client and channel block (default: none)",
    )
    devices: Annotated[str | None, BUILT, LINKS, AfterValidator(_named_devices)] = Field(
        None, description="measured devices: NAME, mixed, FILE or module:f (default: CPUs)"
    )
    cpu_hz: Annotated[
        tuple[float, float] | None, BUILT, LINKS, MEASURED, without("step_seconds"), SPEEDS
    ] = Field(None, description="CPU speeds, Hz (default: 1-2 GHz in slow, 2-4 in fast cells)")
    slowdown: Annotated[float, BUILT, CELLS, LINKS, MEASURED] = Field(
        1.0,
        ge=1,
        description="slowdown of CPUs and bandwidth in half the cells",
    )
    cycles_per_step: Annotated[
        float, BUILT, LINKS, MEASURED, without("step_seconds"), without("cycles_per_flop")
    ] = Field(1e6, gt=0, description="CPU cycles per step of the full model")
    cycles_per_flop: Annotated[float | None, BUILT, LINKS, MEASURED, without("step_seconds")] = (
        Field(
            None,
            gt=0,
            le=1e30,
            description="CPU cycles per counted FLOP of a full-model step (default: not counted)",
        )
    )
    step_seconds: Annotated[float | None, STEP, MEASURED] = Field(
        None,
        gt=0,
        le=1e15,
        description="seconds per full-model step (default: CPU cycles / CPU speed)",
    )
    switched_capacitance: Annotated[float, BUILT, LINKS, MEASURED] = Field(
        1e-28, ge=0, le=1, description="kappa: a CPU cycle at f Hz uses kappa f^2 joules"
    )
    availability: Annotated[float, ONE_SERVER, TASK_ROUNDS] = Field(
        1.0, gt=0, le=1, description="fraction of clients available in each round"
    )
    busy_clients: Annotated[int | None, ONE_SERVER, REQUESTS, FEWER] = Field(
        None,
        ge=1,
        description="maximum number of busy clients; further requests are queued (default: all)",
    )
    drop_out: Annotated[float, ONE_SERVER, TASKS] = Field(
        0.0, ge=0, lt=1, description="probability that a client fails to return a requested update"
    )
