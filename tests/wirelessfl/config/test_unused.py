"""With every choice, a flag is accepted if it has an effect, and otherwise refused."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import pytest

from tests.wirelessfl.config.effects import FIELDS, FLAGS, SECTIONS, STARS, effects
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli.flags import Flag
from wirelessfl.config import Config
from wirelessfl.config.choices import KINDS

VALUES = {
    "samples_per_client": 5, "min_samples": 2, "cells": 2, "snr_db": 20.0, "cpu_hz": (1e9, 2e9),
    "transmit_power_dbm": 23.0, "channel": "channels.npz", "network": "tests.gate.given:one_cell",
    "reuse_factor": 3, "interferers": "active", "association": "nearest",
    "interference_watts": 1e-13, "shadowing_db": 4.0, "layout_file": "positions.csv",
    "coherence": "round",
    "doppler_hz": 5.0, "delay_spread_ns": 100.0, "devices": "mixed", "positions": "walk.csv",
    "step_seconds": 0.1, "cycles_per_flop": 0.1, "path_gain_db": (-3.0, 3.0), "busy_clients": 5,
    "downlink_mbps": 5.0, "backhaul_mbps": 5.0, "edge_rounds": 2, "max_seconds": 9.0,
    "clients_per_round": 30, "client_joules": 2.5, "battery_joules": 2.5,
    "availability_trace": "trace.csv", "availability_period": 9.0, "recharge_period": 9.0,
    "recharge_trace": "power.csv", "local_epochs": 1.5, "cutoff_seconds": 2.5,
    "loss_candidates": 7, "tracking_clients": 30, "sessions": 4, "eval_every": 2,
    "eval_seconds": 1.0, "eval_samples": 5, "target": 0.5, "metric": ("macro-f1",),
    "augment": "tests.gate.given:noisy", "monitor": "loss", "patience": 3, "track": "tensorboard",
    "predicted": (40.0, 9.0, 0.5, 0.8), "chunk": 4, "padding": 0.1, "replay": "off", "workers": 1,
    "threads": 1, "out": "folder", "data_dir": "folder", "tokenizer": "gpt2", "max_length": 16,
    "layers": ("layers.1",), "hidden": (20,), "norm": "batch", "embedding": 8,
    "embedding_file": "vectors.txt", "pretrained": "gpt2", "lora_rank": 2, "lora_alpha": 2.0,
    "beamformer_starts": 3, "time_offset": 0.5, "round_deadline": 2.5,
    "energy_weight": 0.5, "arrival_rate": 1.0, "mean_stay": 1.0, "initially_present": 3,
    "trace": "trace.csv", "history": 2, "deadline": 1.0, "mask_shares": (0.25, 0.25, 0.25, 0.25),
    "widths": (0.5,) * 60, "max_staleness": 2, "pilot_symbols": 8, "rates": "mcs",
    "power_loading": "water-filling",
}  # fmt: skip
"""Values of flags whose default is None."""
BASE = {
    ("presence", "arrivals"): {"arrival_rate": 1.0, "mean_stay": 2.0},
    ("presence", "trace"): {"trace": "trace.csv"},
    ("layout", "file"): {"layout_file": "positions.csv"},
    ("mobility", "trace"): {"positions": "walk.csv"},
}


def runs() -> dict[str, tuple[str, dict[str, Any]]]:
    """An algorithm and flags for each choice, by name of the case."""
    found: dict[str, tuple[str, dict[str, Any]]] = {
        f"algorithm {name}": (name, {}) for name in algorithm_classes()
    }
    for kind, known in KINDS.items():
        for name in known.classes():
            flags: dict[str, Any] = {kind: name, **BASE.get((kind, name), {})}
            if kind in ("warm_start", "presence"):
                flags |= {"sessions": 4}
            if kind in ("path_loss", "mobility"):
                flags |= {"layout": "disc"}
            if kind == "recharge":
                flags |= {"battery_joules": 1.0}
                flags |= {"recharge_trace": "power.csv"} if name == "trace" else {}
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


@pytest.mark.thorough(every=4)
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
