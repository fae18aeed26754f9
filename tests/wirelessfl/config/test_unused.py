"""With every choice, a flag is accepted if it has an effect, and otherwise refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest

from wirelessfl.algorithms import algorithm_classes
from wirelessfl.cli.flags import Flag, all_flags
from wirelessfl.config import Config
from wirelessfl.config.kinds import KINDS, chosen_classes
from wirelessfl.data import dataset_names
from wirelessfl.errors import ConfigError

FLAGS = {flag.name: flag for flag in all_flags()}
SHARED = {"csi_error": ("failures", "uplink")}
"""Kinds of choices that share a flag; at most one of them has it in a run."""
STARS = {name for name, cls in algorithm_classes().items() if cls.topology == "star"}
NARROW = {"ra-fed", "ram-fed", "heterofl", "fedrolex", "fedavg-small"}
WITH_STATE = {"scaffold", "scaffold-m", "fadamgc", "fa-nt", "local-adam", "moon", "ram-fed"}
TRACKING = {"scaffold", "scaffold-m", "fadamgc", "fa-nt"}
WITHOUT_MEAN = {"fedasync", "fedbuff"}
TEXTS = {"sst2", "20newsgroups", "ag-news", "qqp", "qnli"}
CLIENTS = {"requests", "fixed_buffer", "option", "spread_updates", "period", "floor"}

Run = Mapping[str, Any]
"""Names of a run's choices by kind, with ``sessions`` and ``dataset``."""


def over_the_air(run: Run) -> bool:
    return run["uplink"] != "fixed" and run["delays"] != "shifted-exponential"


def tasks(run: Run) -> bool:
    return run["schedule"] != "rounds" and run["algorithm"] in STARS


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
    "coherence": lambda run: cells(run) and over_the_air(run),
    **dict.fromkeys(
        ("cpu_hz", "cycles_per_step", "cycles_per_flop", "switched_capacitance"), computes
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
    "eval_first": lambda run: False,  # needs sessions, and rounds that are not evaluated
    "stop_at_target": lambda run: False,  # needs target
    "patience": lambda run: not run["sessions"],
    "min_delta": lambda run: False,  # needs patience
    "client_joules": lambda run: run["schedule"] == "rounds",
    "cutoff_seconds": lambda run: not tasks(run) and run["uplink"] != "aircomp",
    "weighting": lambda run: run["algorithm"] not in WITHOUT_MEAN,
    "padding": lambda run: run["algorithm"] in NARROW,
    "client_log": lambda run: not tasks(run),
    "client_states": lambda run: run["algorithm"] in WITH_STATE,
    "pixels": lambda run: run["dataset"] not in {*TEXTS, "shakespeare"},
    "tokenizer": lambda run: run["dataset"] in TEXTS,
    "max_length": lambda run: run["dataset"] in TEXTS,
}
"""Conditions under which flags of sections have an effect; all others always have one."""
FIELDS: dict[str, Callable[[Run], bool]] = {
    "layers": lambda run: run["algorithm"] in {"hist", *NARROW},
    "reuse": lambda run: run["split"] == "natural",  # else it needs samples_per_client
    "shared_labels": lambda run: False,  # needs overlap > 0
    "option": lambda run: False,  # this and the next four need several tasks
    "floor": lambda run: False,
    "fixed_buffer": lambda run: False,
    "spread_updates": lambda run: False,
    "period": lambda run: False,
    "size_cap": lambda run: False,  # needs optimized sizes
    "mask_overlap": lambda run: run["algorithm"] == "hist",  # else it needs masks of a partition
    "deadline": lambda run: False,  # needs budget deadline
    "coverage_of": lambda run: False,  # needs min_coverage
    "history_keep": lambda run: False,  # needs history
    "elements_per_symbol": lambda run: False,  # needs the physical convention
    "correlation": lambda run: False,  # this and the next need the convention mmse
    "unbiased_sum": lambda run: False,
    "requests": tasks,
    "staleness_exponent": lambda run: run["schedule"] == "buffered",
    "reuse_factor": lambda run: not tasks(run) or run["schedule"] != "buffered",
    "wait": lambda run: not tasks(run),
    "round_deadline": lambda run: not tasks(run),
    "energy_weight": lambda run: not tasks(run),
    "late": lambda run: False,  # needs round_deadline
    "threshold": lambda run: not tasks(run),
}
"""Conditions under which settings of a taken choice have an effect; all others always have one."""
VALUES = {
    "samples_per_client": 5,
    "min_samples": 2,
    "cells": 2,
    "snr_db": 20.0,
    "cpu_hz": (1e9, 2e9),
    "transmit_power_dbm": 23.0,
    "channel": "channels.npz",
    "network": "tests.gate.given:one_cell",
    "reuse_factor": 3,
    "shadowing_db": 4.0,
    "layout_file": "positions.csv",
    "coherence": "round",
    "step_seconds": 0.1,
    "cycles_per_flop": 0.1,
    "path_gain_db": (-3.0, 3.0),
    "busy_clients": 5,
    "downlink_mbps": 5.0,
    "backhaul_mbps": 5.0,
    "edge_rounds": 2,
    "max_seconds": 9.0,
    "clients_per_round": 30,
    "client_joules": 2.5,
    "local_epochs": 1.5,
    "cutoff_seconds": 2.5,
    "loss_candidates": 7,
    "tracking_clients": 30,
    "sessions": 4,
    "eval_every": 2,
    "eval_seconds": 1.0,
    "target": 0.5,
    "metric": ("macro-f1",),
    "monitor": "loss",
    "patience": 3,
    "track": "tensorboard",
    "chunk": 4,
    "padding": 0.1,
    "replay": "off",
    "workers": 1,
    "threads": 1,
    "out": "folder",
    "data_dir": "folder",
    "tokenizer": "gpt2",
    "max_length": 16,
    "layers": ("layers.1",),
    "hidden": (20,),
    "norm": "batch",
    "embedding": 8,
    "pretrained": "gpt2",
    "lora_rank": 2,
    "lora_alpha": 2.0,
    "beamformer_starts": 3,
    "round_deadline": 2.5,
    "energy_weight": 0.5,
    "arrival_rate": 1.0,
    "mean_stay": 1.0,
    "initially_present": 3,
    "trace": "trace.csv",
    "history": 2,
    "deadline": 1.0,
}
"""Values of flags whose default is None."""
BASE = {
    "sessions": {"sessions": 4},
    "arrivals": {"arrival_rate": 1.0, "mean_stay": 2.0},
    "trace": {"trace": "trace.csv"},
    "file": {"layout_file": "positions.csv"},
}


def runs() -> dict[str, tuple[str, dict[str, Any]]]:
    """An algorithm and flags for each choice, by name of the case."""
    found: dict[str, tuple[str, dict[str, Any]]] = {
        f"algorithm {name}": (name, {}) for name in algorithm_classes()
    }
    for kind, known in KINDS.items():
        for name in known.classes():
            flags: dict[str, Any] = {kind: name, **BASE.get(name, {})}
            if kind in ("warm_start", "presence"):
                flags |= {"sessions": 4}
            if kind == "path_loss":
                flags |= {"layout": "disc"}
            if kind == "select":
                flags |= {"clients_per_round": 5}
            if kind == "assignment":
                flags |= {"schedule": "simultaneous"}
            if kind == "delays":
                flags |= {"schedule": "buffered", "dataset": "mnist"}
            for algorithm in ("fedavg", "hist") if kind in ("schedule", "uplink") else ("fedavg",):
                if name != "simultaneous" or algorithm in STARS:
                    found[f"{kind} {name} of {algorithm}"] = (algorithm, flags)
    for name in dataset_names():
        found[f"data set {name}"] = ("fedavg", {"dataset": name})
    return found


RUNS = runs()


def has_effect(flag: Flag, config: Config) -> bool:
    """Whether a flag has an effect in a run with these choices."""
    run = {kind: (getattr(config, kind) or {}).get("name") for kind in (*KINDS, "algorithm")}
    run |= {"sessions": config.sessions.sessions, "dataset": config.data.dataset}
    if flag.section in (*KINDS, "algorithm"):
        classes = chosen_classes(dict(config))
        kinds = SHARED.get(flag.name, (flag.section,))
        taken = [classes[kind] for kind in kinds if kind in classes]
        if not any(flag.key in {entry.name for entry in fields(each)} for each in taken):
            return False
        return FIELDS.get(flag.name, lambda _: True)(run)
    return SECTIONS.get(flag.name, lambda _: True)(run)


def values(flag: Flag) -> list[Any]:
    """Valid values of a flag: the default, if it has one, and of a choice also another."""
    default = flag.default
    if default is None:
        return [VALUES[flag.name]]
    if isinstance(default, bool):
        return [True]
    if flag.metavar.startswith("{"):
        return [default, *(name for name in flag.metavar[1:-1].split(",") if name != default)][:2]
    return [default]


REFUSED = r"(conflicts with|needs|is a setting of) .*(: |, or )(choose|give|leave|raise)"


def test_tables_name_existing_flags() -> None:
    assert {*SECTIONS, *FIELDS, *VALUES} <= FLAGS.keys()


@pytest.mark.parametrize(
    ("algorithm", "flags", "message"),
    [
        (
            "fedavg",
            {"split": "iid", "reuse": True},
            "reuse=True needs samples_per_client: set it, or leave reuse out.",
        ),
        (
            "fedavg",
            {"split": "dirichlet", "samples_per_client": 9, "min_samples": 1},
            "min_samples=1 conflicts with samples_per_client=9: choose one of them, or leave",
        ),
        (
            "fedavg",
            {"step_seconds": 0.1, "cycles_per_step": 1e6},
            "cycles_per_step=1000000.0 conflicts with step_seconds=0.1",
        ),
        (
            "fedast",
            {"delays": "shifted-exponential", "step_seconds": 0.1, "delay_scale": 0.5},
            "delay_scale=0.5 conflicts with step_seconds=0.1",
        ),
        (
            "fedavg",
            {"sessions": 4, "shared_labels": "split"},
            "shared_labels='split' needs overlap above 0: set it, or leave",
        ),
        ("hfedavg", {"schedule": "buffered", "requests": 96}, "requests=96 conflicts with algo"),
        ("fedavg", {"alpha": 0.5}, 'alpha=0.5 is a setting of split "dirichlet", and split is "n'),
        ("fedavg", {"rician_k_db": 6.0}, 'rician_k_db=6.0 is a setting of fading "rician"'),
        ("fedavg", {"select": "age"}, "select='age' needs clients_per_round: set it, or leave"),
        (
            "fedavg",
            {"select": "power-of-choice", "loss_samples": 9},
            "select='power-of-choice' needs clients_per_round: set it, or leave select",
        ),
        (
            "fedavg",
            {"select": "best-channel", "clients_per_round": 5, "uplink": "fixed"},
            "select='best-channel' conflicts with uplink \"fixed\", which has no radio channel",
        ),
        (
            "fedavg",
            {"loss_candidates": 9},
            'loss_candidates=9 is a setting of select "power-of-choice"',
        ),
        ("fedast", {"select": "random"}, "select='random' conflicts with schedule \"buffered\""),
        (
            "hfedavg",
            {"schedule": "buffered", "select": "random"},
            "select='random' conflicts with schedule \"buffered\", in which all clients of a cell",
        ),
        (
            "fedast",
            {"client_joules": 1.0},
            'client_joules=1.0 conflicts with schedule "buffered", which has no synchronous rounds',
        ),
        (
            "fedavg",
            {"local_epochs": 1.0, "local_steps": 20},
            "local_steps=20 conflicts with local_epochs=1, which gives each client its own number",
        ),
        (
            "fedast",
            {"cutoff_seconds": 1.0},
            'cutoff_seconds=1.0 conflicts with schedule "buffered", which has no synchronous round',
        ),
        (
            "hfedavg",
            {"cutoff_seconds": 1.0, "uplink": "aircomp"},
            'cutoff_seconds=1.0 conflicts with uplink "aircomp", over which the clients of a cell',
        ),
        (
            "hfedavg",
            {"cutoff_seconds": 1.0, "uplink": "ofdma", "round_deadline": 2.0},
            "cutoff_seconds=1.0 conflicts with round_deadline=2, which all updates meet: choose",
        ),
        (
            "fedavg",
            {"csi_error": 0.1},
            'csi_error=0.1 is a setting of uplink "aircomp" or failures "outage", and uplink is '
            '"tdma" and failures is "none": choose uplink "aircomp" or failures "outage", or leave',
        ),
        (
            "sync-st",
            {"uplink": "aircomp", "threshold": 0.5},
            'threshold=0.5 conflicts with schedule "simultaneous", which has no synchronous rounds',
        ),
        ("fedavg", {"compression_keep": 0.1}, 'compression_keep=0.1 is a setting of compression "'),
        (
            "wirelessfl.algorithms.fedavg:FedAvg",
            {"client_states": "disk"},
            "client_states='disk' conflicts with algorithm \"wirelessfl.algorithms.fedavg:FedAvg\""
            ", which keeps no client state: leave client_states out.",
        ),
        ("fedavg", {"overlap": 0.0}, "overlap=0.0 is a setting of presence and needs sessions"),
    ],
)
def test_refusals_give_the_reason(algorithm: str, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Config.from_flags(algorithm, **flags)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("name", RUNS)
def test_flags_are_refused_exactly_where_they_have_no_effect(name: str) -> None:
    algorithm, flags = RUNS[name]
    config = Config.from_flags(algorithm, **flags)
    for flag in FLAGS.values():
        if flag.name in flags:
            continue
        for value in values(flag):
            try:
                Config.from_flags(algorithm, **flags, **{flag.name: value})
                refusal = None
            except ConfigError as error:
                refusal = str(error)
            told = refusal is not None and re.match(f"{flag.name}=.* {REFUSED}", refusal)
            if has_effect(flag, config):
                assert not told, refusal
            else:
                assert told, (flag.name, value, refusal)
