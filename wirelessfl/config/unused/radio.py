"""The network: settings without effect on cells, links, computing and gains."""

from __future__ import annotations

from wirelessfl.config.settings import Settings
from wirelessfl.config.unused.place import Found

RADIO = (
    "bandwidth_hz",
    "antennas",
    "antenna_correlation",
    "snr_db",
    "path_gain_db",
    "coherence",
    "transmit_power_dbm",
    "transmit_power_w",
    "noise_figure_db",
    "noise_dbm_per_hz",
    "channel",
)
"""Network settings of the radio channel."""
COMPUTING = ("cpu_hz", "cycles_per_step", "cycles_per_flop", "slowdown", "switched_capacitance")
"""Network settings of the clients' CPUs."""


def cell_settings(settings: Settings) -> Found:
    """Settings of cells, if the algorithm has a single server."""
    if settings.choices.algorithm.topology != "star":
        return
    reason = (
        f'conflicts with algorithm "{settings.algorithm["name"]}", which is a star with one '
        'server: choose "hfedavg" or "hist"'
    )
    for key in ("cells", "slowdown", "backhaul_mbps", "coherence"):
        yield ("network", key), reason
    yield ("training", "edge_rounds"), reason


def link_settings(settings: Settings) -> Found:
    """Network settings without effect because of the uplink, latency model or cost of a step."""
    frame, network = settings.frame, settings.network
    if not frame.radio:
        name = settings.delays["name"] if settings.delays else ""
        reason = f'conflicts with delays "{name}", which draws the total time of a request: choose '
        for key in (*RADIO, *COMPUTING, "downlink_mbps"):
            yield ("network", key), f'{reason}delays "wireless"'
    elif not frame.uplink.radio:
        for key in RADIO:
            reason = (
                f'conflicts with uplink "{settings.uplink["name"]}", which has no radio channel'
            )
            yield ("network", key), f'{reason}: choose uplink "tdma"'
    if frame.radio and network.step_seconds is not None:
        for key in ("cpu_hz", "cycles_per_step", "cycles_per_flop"):
            yield (
                ("network", key),
                f"conflicts with step_seconds={network.step_seconds:g}, which replaces it: choose "
                "one of them",
            )
    if network.cycles_per_flop is not None:
        yield (
            ("network", "cycles_per_step"),
            f"conflicts with cycles_per_flop={network.cycles_per_flop:g}, which replaces it: "
            "choose one of them",
        )
    if not frame.radio and network.step_seconds is not None:
        yield (
            ("delays", "delay_scale"),
            f"conflicts with step_seconds={network.step_seconds:g}, which replaces it: choose one "
            "of them",
        )


def gain_settings(settings: Settings) -> Found:
    """Settings of an SNR if it follows from mean channel gains, and of the noise if it does not."""
    frame, network = settings.frame, settings.network
    if not (frame.radio and frame.uplink.radio):
        return
    if network.transmit_power_dbm is not None:
        yield (
            ("network", "transmit_power_w"),
            f"conflicts with transmit_power_dbm={network.transmit_power_dbm:g}, which replaces it: "
            "choose one of them",
        )
    if frame.channel is not None:
        for key in ("antennas", "antenna_correlation", "snr_db", "path_gain_db"):
            yield ("network", key), frame.recorded
    elif frame.layout.positions:
        if settings.regime == "tasks" and frame.schedule.work == "requests":
            yield (
                ("layout", "reuse_factor"),
                f'conflicts with schedule "{frame.schedule.title}", whose uploads have no common '
                'block: choose schedule "rounds"',
            )
        for key in ("snr_db", "path_gain_db"):
            yield (
                ("network", key),
                f'conflicts with layout "{frame.layout.title}", whose distances give the SNR: '
                'choose layout "section-vi-c"',
            )
    else:
        for key in ("noise_figure_db", "noise_dbm_per_hz"):
            yield (
                ("network", key),
                f'conflicts with layout "{frame.layout.title}", which fixes the SNR: choose layout '
                '"disc", "hexagonal" or "file"',
            )
