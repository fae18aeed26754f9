"""Which flags have an effect in a run, by its choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from wirelessfl.algorithms import HFedAvg, algorithm_classes
from wirelessfl.cli.flags import Flag, all_flags
from wirelessfl.config import Config
from wirelessfl.config.choices import CHOSEN
from wirelessfl.config.kinds import chosen_classes

FLAGS = {flag.name: flag for flag in all_flags()}
SHARED = {"csi_error": ("failures", "uplink")}
"""Kinds of choices that share a flag; at most one of them has it in a run."""
STARS = {name for name, cls in algorithm_classes().items() if not issubclass(cls, HFedAvg)}
NARROW = {"ra-fed", "ram-fed", "heterofl", "fedrolex", "fedavg-small"}
WITH_STATE = {"scaffold", "scaffold-m", "fadamgc", "fa-nt", "local-adam", "moon", "ram-fed"}
MEMORY = {"fedacg", "fedadam", "fedyogi", "fedadagrad", "fedams", "fedavg-m", "scaffold-m"}
"""Algorithms whose server has momentum or moments."""
TRACKING = {"scaffold", "scaffold-m", "fadamgc", "fa-nt"}
WITHOUT_MEAN = {"fedasync", "fedbuff"}
CLIENTS = {"requests", "fixed_buffer", "option", "spread_updates", "period", "floor"}

Run = Mapping[str, Any]
"""Names of a run's choices by kind, with ``sessions``."""


def over_the_air(run: Run) -> bool:
    return run["uplink"] != "fixed" and run["delays"] != "shifted-exponential"


def tasks(run: Run) -> bool:
    return run["schedule"] != "rounds" and run["algorithm"] in STARS


def separate(run: Run) -> bool:
    """Whether uploads of single clients have no common block."""
    return tasks(run) and (run["schedule"] == "buffered" or run["uplink"] != "aircomp")


def cells(run: Run) -> bool:
    return run["algorithm"] not in STARS


def computes(run: Run) -> bool:
    return run["delays"] != "shifted-exponential"


def placed(run: Run) -> bool:
    return over_the_air(run) and run["layout"] != "section-vi-c"


SECTIONS: dict[str, Callable[[Run], bool]] = {
    **dict.fromkeys(
        ("bandwidth_hz", "antennas", "antenna_correlation", "transmit_power_dbm"), over_the_air
    ),
    "transmit_power_w": over_the_air,
    "snr_db": lambda run: over_the_air(run) and not placed(run),
    "path_gain_db": lambda run: over_the_air(run) and not placed(run),
    "noise_figure_db": placed,
    "noise_dbm_per_hz": placed,
    "channel": over_the_air,
    "pilot_symbols": over_the_air,
    "delay_spread_ns": over_the_air,
    "coherence": lambda run: cells(run) and over_the_air(run),
    **dict.fromkeys(
        ("doppler_hz", "interference_watts"),
        lambda run: over_the_air(run) and not separate(run),
    ),
    "block_seconds": lambda run: run["mobility"] is not None,  # else it needs doppler_hz
    **dict.fromkeys(
        ("devices", "cpu_hz", "cycles_per_step", "cycles_per_flop", "switched_capacitance"),
        computes,
    ),
    "downlink_mbps": computes,
    "slowdown": lambda run: cells(run) and computes(run),
    "cells": cells,
    "edge_rounds": cells,
    "backhaul_mbps": cells,
    "drop_out": tasks,
    "availability": lambda run: tasks(run) and run["schedule"] == "simultaneous",
    "busy_clients": lambda run: tasks(run) and run["schedule"] == "buffered",
    "eval_seconds": lambda run: run["schedule"] != "rounds",
    "clients_per_round": lambda run: run["schedule"] != "buffered",
    "tracking_clients": lambda run: run["algorithm"] in TRACKING and run["schedule"] == "rounds",
    "sessions": lambda run: run["schedule"] == "rounds",
    "tested_labels": lambda run: run["sessions"] is not None,
    "server_momentum": lambda run: run["sessions"] is not None and run["algorithm"] in MEMORY,
    "on_empty": lambda run: run["battery"] is not None,
    "patience": lambda run: not run["sessions"],
    "client_joules": lambda run: run["schedule"] == "rounds",
    "battery_joules": lambda run: not tasks(run) and not run["sessions"],
    "availability_trace": lambda run: (
        not run["sessions"]
        and run["schedule"] != "simultaneous"
        and not (tasks(run) and run["uplink"] == "aircomp")
    ),
    "cutoff_seconds": lambda run: run["uplink"] != "aircomp",
    "error_feedback": lambda run: run["uplink_compression"] is not None,
    "weighting": lambda run: run["algorithm"] not in WITHOUT_MEAN,
    "padding": lambda run: run["algorithm"] in NARROW or run["assigner"] not in {None, "partition"},
    "client_log": lambda run: not tasks(run),
    "client_states": lambda run: run["algorithm"] in WITH_STATE,
}
"""Conditions under which flags of sections have an effect; all others always have one."""
ALONE_WITHOUT_EFFECT = (
    *("eval_first", "stop_at_target", "min_delta"),
    *("availability_unit", "availability_period"),
    *("option", "floor", "fixed_buffer", "spread_updates", "period"),  # need several tasks
    *("shared_labels", "late", "history_keep", "coverage_of"),
    *("size_cap", "mask_shares", "deadline"),
    *("elements_per_symbol", "correlation", "unbiased_sum"),
    *("doppler_model", "delay_profile", "subcarriers", "interferers", "handover"),
)
"""Flags that need a value of another flag, which none of the runs has."""
FIELDS: dict[str, Callable[[Run], bool]] = {
    "layers": lambda run: run["algorithm"] in {"hist", *NARROW} or run["assigner"] is not None,
    "reuse": lambda run: run["split"] == "natural",  # else it needs samples_per_client
    "mask_overlap": lambda run: (
        run["algorithm"] == "hist" or run["assigner"] == "partition"
    ),  # else it needs masks of a partition
    **dict.fromkeys(("requests", "max_staleness", "update_weights"), tasks),
    "staleness_exponent": lambda run: run["schedule"] == "buffered",
    "reuse_factor": lambda run: not tasks(run) or run["schedule"] != "buffered",
    **dict.fromkeys(
        ("wait", "round_deadline", "energy_weight", "threshold"), lambda run: not tasks(run)
    ),
}
"""Conditions under which settings of a taken choice have an effect; all others always have one."""


def effects(config: Config) -> dict[str, bool]:
    """Whether each flag has an effect in a run with these choices, by name of the flag."""
    run = {kind: config.tables.get(kind, {}).get("name") for kind in CHOSEN}
    run |= {"sessions": config.sessions.sessions, "battery": config.training.battery_joules}
    classes = chosen_classes(config.all_tables())
    return {flag.name: has_effect(flag, run, classes) for flag in FLAGS.values()}


def has_effect(flag: Flag, run: Run, classes: Mapping[str, type[Any]]) -> bool:
    """Whether a flag has an effect in a run, which has choices of these classes by kind."""
    if flag.name in ALONE_WITHOUT_EFFECT:
        return False
    if flag.section in CHOSEN:
        of_methods = flag.section in ("algorithm", "assigner")
        methods = ("algorithm", "local", "assigner")
        kinds = SHARED.get(flag.name, methods if of_methods else (flag.section,))
        taken = [classes[kind] for kind in kinds if kind in classes]
        if not any(flag.key in {entry.name for entry in fields(each)} for each in taken):
            return False
        return FIELDS.get(flag.name, lambda _: True)(run)
    return SECTIONS.get(flag.name, lambda _: True)(run)
