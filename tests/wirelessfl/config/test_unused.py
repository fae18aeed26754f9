"""With every choice, a flag is accepted if it has an effect, and otherwise refused."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import pytest

from tests.wirelessfl.config.effects import FIELDS, FLAGS, SECTIONS, STARS, effects
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.cli.flags import Flag
from wirelessfl.config import Config
from wirelessfl.config.choices import KINDS
from wirelessfl.errors import ConfigError

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
    "augment": "tests.gate.given:noisy",
    "monitor": "loss",
    "patience": 3,
    "track": "tensorboard",
    "predicted": (40.0, 9.0, 0.5, 0.8),
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
    "mask_shares": (0.25, 0.25, 0.25, 0.25),
    "widths": (0.5,) * 60,
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
            algorithms = ("fedavg", "hist") if kind in ("schedule", "uplink") else ("fedavg",)
            for algorithm in ("hfedavg",) if name == "partition" else algorithms:
                if name != "simultaneous" or algorithm in STARS:
                    found[f"{kind} {name} of {algorithm}"] = (algorithm, flags)
    return found


RUNS = runs()
EVERY = os.environ.get("HYPOTHESIS_PROFILE") == "fuzz"
"""Whether every flag is tried in every run, which takes three times as long."""


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
            {"client_log": True},
            'client_log=True conflicts with schedule "buffered", which has no synchronous round',
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
            "client_states='disk' conflicts with algorithm \"fedavg\", which keeps no client state",
        ),
        ("fedavg", {"overlap": 0.0}, "overlap=0.0 is a setting of presence and needs sessions"),
        (
            "fedavg",
            {"sessions": 4, "presence_unit": "rounds"},
            'presence_unit=\'rounds\' is a setting of presence "arrivals" or "trace"',
        ),
        ("fedavg", {"eval_first": 3}, "eval_first=3 needs sessions: set sessions"),
        (
            "fedavg",
            {"sessions": 4, "warm_start": "proposed", "history_keep": "diverse"},
            "history_keep='diverse' needs history",
        ),
        (
            "fedavg",
            {"sessions": 4, "warm_start": "previous", "similarity_scale": 3},
            'similarity_scale=3 is a setting of warm start "proposed" or "random-pilot", and',
        ),
        ("fedavg", {"warm_start": "average"}, "warm_start='average' needs sessions: set sessions"),
        (
            "fedavg",
            {"schedule": "simultaneous", "fairness": 2.0},
            'fairness=2.0 is a setting of assignment "bayes", and assignment is "random": choose '
            'assignment "bayes", or leave fairness out.',
        ),
        (
            "fedavg",
            {"fairness": 2.0},
            'fairness=2.0 is a setting of assignment and conflicts with schedule "rounds", which '
            'has no rounds of several tasks: choose schedule "simultaneous", or leave fairness out',
        ),
        (
            "fedavg",
            {"beta1": 0.5},
            'beta1=0.5 is a setting of algorithm "fa-nt", "fadamgc", "fedadagrad" or 4 others, '
            'and algorithm is "fedavg": choose algorithm "fa-nt", "fadamgc", ',
        ),
        (
            "hist",
            {"local": "scaffold", "beta2": 0.5},
            'beta2=0.5 is a setting of local "fa-nt", ',
        ),
        (
            "hfedavg",
            {"mask_sizes": "uniform"},
            'mask_sizes=\'uniform\' is a setting of assigner "partition" or algorithm "hist", and '
            'assigner is "none" and algorithm is "hfedavg": choose assigner "partition" or '
            'algorithm "hist", or leave mask_sizes out.',
        ),
        (
            "fedavg",
            {"cells": 1},
            'cells=1 conflicts with algorithm "fedavg", which is a star with one server: choose '
            '"hfedavg" or "hist"',
        ),
        (
            "fedbuff",
            {"schedule": "rounds", "staleness_exponent": 2.0},
            'staleness_exponent=2.0 conflicts with schedule "rounds", under which no update is '
            'stale: choose schedule "buffered", or leave staleness_exponent out.',
        ),
        (
            "fedavg",
            {"schedule": "buffered", "uplink": "fixed", "wait": "slowest"},
            "wait='slowest' conflicts with schedule \"buffered\", which has no synchronous rounds "
            'of one model: choose schedule "rounds", or leave wait out.',
        ),
        (
            "hfedavg",
            {"eval_seconds": 0.5},
            'eval_seconds=0.5 conflicts with schedule "rounds", which evaluates after whole '
            'rounds: choose eval_every or schedule "buffered", or leave eval_seconds out.',
        ),
        (
            "fedavg",
            {"schedule": "simultaneous", "busy_clients": 3},
            'busy_clients=3 conflicts with schedule "simultaneous", which has no requests to '
            'clients: choose schedule "buffered", or leave busy_clients out.',
        ),
        (
            "hfedavg",
            {"schedule": "buffered", "drop_out": 0.1},
            'drop_out=0.1 conflicts with algorithm "hfedavg", which has cells: choose one '
            "without cells, or leave drop_out out.",
        ),
        (
            "fedavg",
            {"schedule": "buffered", "clients_per_round": 3},
            'clients_per_round=3 conflicts with schedule "buffered", which does not sample '
            'clients: set requests, or choose schedule "rounds", or leave clients_per_round out.',
        ),
        (
            "fadamgc",
            {"schedule": "buffered", "tracking_clients": 3},
            'tracking_clients=3 conflicts with schedule "buffered", under which every client that '
            'trains sends tracking terms: choose schedule "rounds", or leave',
        ),
        (
            "fedavg",
            {"schedule": "buffered", "sessions": 3},
            'sessions=3 conflicts with schedule "buffered", which has no sessions: choose schedule '
            '"rounds", or leave sessions out.',
        ),
        (
            "fedavg",
            {"schedule": "simultaneous", "sessions": 3, "task": ["digits", "mnist"]},
            'sessions=3 conflicts with schedule "simultaneous", which has no sessions: choose '
            'schedule "rounds", or leave sessions out.',
        ),
        (
            "fedbuff",
            {"weighting": "uniform"},
            "weighting='uniform' conflicts with algorithm \"fedbuff\", which does not merge by a "
            "mean: leave weighting out.",
        ),
        ("fedast", {"option": "D"}, "option='D' needs several tasks: add tables of tasks, or"),
        (
            "fedavg",
            {"stop_at_target": True},
            "stop_at_target=True needs target: set it, or leave stop_at_target out",
        ),
        (
            "fedavg",
            {"stop_at_target": True, "target": 0.5, "schedule": "buffered"},
            'stop_at_target=True conflicts with schedule "buffered", under which a task always',
        ),
        (
            "fedavg",
            {"stop_at_target": True, "target": 0.5, "sessions": 2},
            "stop_at_target=True conflicts with sessions, which test other labels",
        ),
        (
            "fedavg",
            {"patience": 3, "sessions": 2},
            "patience=3 conflicts with sessions, which test",
        ),
        ("fedavg", {"min_delta": 0.1}, "min_delta=0.1 needs patience: set it, or"),
        (
            "hist",
            {"uplink": "ofdma", "allocation": "equal", "round_deadline": 2.0},
            "allocation='equal' conflicts with round_deadline=2, which decides the bands: leave",
        ),
        (
            "hist",
            {"uplink": "ofdma", "allocation": "optimal", "energy_weight": 2.0},
            "allocation='optimal' conflicts with energy_weight=2",
        ),
        (
            "hist",
            {"uplink": "ofdma", "late": "lost", "energy_weight": 1.0},
            "late='lost' needs round_deadline",
        ),
        (
            "fedavg",
            {"uplink": "aircomp", "elements_per_symbol": 2},
            "elements_per_symbol=2 conflicts with convention='published', which sends one real",
        ),
        (
            "fedast",
            {"cycles_per_flop": 2.0, "delays": "shifted-exponential"},
            'cycles_per_flop=2.0 conflicts with delays "shifted-exponential"',
        ),
    ],
)
def test_refusals_give_the_reason(algorithm: str, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Config.from_flags(algorithm, **flags)
    assert str(refused.value).startswith(message)


def test_groups_share_the_flags() -> None:
    """Together, any three runs in sequence try every flag."""
    for place in range(len(RUNS) - 2):
        assert {flag for at in range(3) for flag in tried(place + at)} == {*FLAGS}


def tried(place: int) -> list[str]:
    """Names of the flags that the run at a place tries even if their effect is the usual one."""
    names = [*FLAGS]
    return names if EVERY else names[place % 3 :: 3]


@cache
def usual_effects() -> dict[str, bool]:
    """Whether each flag has an effect in a run of FedAvg."""
    return effects(Config.from_flags("fedavg"))


@pytest.mark.parametrize("name", RUNS)
def test_flags_are_refused_exactly_where_they_have_no_effect(name: str) -> None:
    """Every flag whose effect differs from that in a run of FedAvg, and a third of the others.

    A flag tried in one run is usually not tried in the next two, which make a similar choice.
    """
    algorithm, flags = RUNS[name]
    found, usual = effects(Config.from_flags(algorithm, **flags)), usual_effects()
    always = tried([*RUNS].index(name))
    for flag in FLAGS.values():
        if flag.name in flags:
            continue
        if flag.name not in always and found[flag.name] == usual[flag.name]:
            continue
        for value in values(flag):
            try:
                Config.from_flags(algorithm, **flags, **{flag.name: value})
                refusal = None
            except ConfigError as error:
                refusal = str(error)
            told = refusal is not None and re.match(f"{flag.name}=.* {REFUSED}", refusal)
            if found[flag.name]:
                assert not told, refusal
            else:
                assert told, (flag.name, value, refusal)
