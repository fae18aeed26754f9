"""Every setting of every choice is read back from TOML, and dropped if its choice changes."""

from __future__ import annotations

import pickle
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from wirelessfl.algorithms import algorithm_classes
from wirelessfl.base.needs import SEVERAL_TASKS, needs_of
from wirelessfl.base.registry import Choice
from wirelessfl.base.wording import without_none
from wirelessfl.config import Config
from wirelessfl.config.choices import KINDS, OPTIONAL
from wirelessfl.config.kinds import classes_of, prefix_of
from wirelessfl.config.sections import SECTIONS

CLASSES: dict[str, Mapping[str, type[Choice]]] = {
    "algorithm": algorithm_classes(),
    **{kind: known.classes() for kind, known in KINDS.items()},
}
VALUES: Mapping[str, Any] = {
    "tokenizer": "words:50",
    "max_length": 16,
    "layers": ("layers.1", "layers.4"),
    "hidden": (30, 20),
    "norm": "batch",
    "embedding": 8,
    "embedding_file": "/folder/vectors.txt",
    "pretrained": "folder",
    "lora_rank": 2,
    "lora_alpha": 2.5,
    "local": "fedprox",
    "deadline": 1.5,
    "min_coverage": 2,
    "capacities": (1.0, 0.5),
    "widths": (0.5, 0.25) * 30,
    "beamformer_starts": 3,
    "rates": "mcs",
    "power_loading": "equal",
    "round_deadline": 2.5,
    "energy_weight": 0.5,
    "arrival_rate": 1.5,
    "mean_stay": 2.5,
    "initially_present": 3,
    "trace": "/folder/trace.csv",
    "layout_file": "/folder/positions.csv",
    "positions": "/folder/walk.csv",
    "reuse_factor": 3,
    "interferers": "active",
    "association": "strongest",
    "time_offset": 0.5,
    "antenna_gain_db": 8.0,
    "shadowing_db": 4.5,
    "history": 2,
    "size_cap": 2.0,
    "mask_shares": (0.4, 0.3, 0.2, 0.1),
    "min_samples": 2,
    "samples_per_client": 5,
    "overlap": 0.5,
    "unseen_labels": 1,
    "loss_candidates": 7,
    "max_staleness": 2,
    "recharge_trace": "/folder/power.csv",
    "recharge_period": 9.5,
}
"""Values of settings for which none can be derived from the default."""
NEEDS: Mapping[str, Mapping[str, Any]] = {
    "interferers": {"reuse_factor": 3},
    "reuse": {"samples_per_client": 5},
    "shared_labels": {"overlap": 0.5},
    "history_keep": {"history": 2},
    "spread_updates": {"option": "D"},
    "period": {"option": "D"},
    "size_cap": {"mask_sizes": "optimized"},
    "mask_shares": {"mask_sizes": "fixed"},
    "layers": {"algorithm": "hist"},
    "late": {"round_deadline": 2.5},
    "elements_per_symbol": {"convention": "physical"},
    "correlation": {"convention": "mmse"},
    "unbiased_sum": {"convention": "mmse"},
    "coverage_of": {"min_coverage": 1},
}
"""Further settings that a setting needs."""
CHOICE_NEEDS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("presence", "arrivals"): {"arrival_rate": 1.0, "mean_stay": 2.0},
    ("presence", "trace"): {"trace": "/folder/trace.csv"},
    ("delays", "shifted-exponential"): {"dataset": "mnist"},
    ("layout", "file"): {"layout_file": "/folder/positions.csv"},
    ("mobility", "trace"): {"positions": "/folder/walk.csv"},
    ("assigner", "partition"): {"algorithm": "hfedavg"},
    ("recharge", "trace"): {"recharge_trace": "/folder/power.csv"},
}
KIND_NEEDS: Mapping[str, Mapping[str, Any]] = {
    "interferers": {"reuse_factor": 3},
    "warm_start": {"sessions": 4},
    "presence": {"sessions": 4},
    "assignment": {"schedule": "simultaneous"},
    "delays": {"schedule": "buffered"},
    "path_loss": {"layout": "disc"},
    "mobility": {"layout": "disc"},
    "select": {"clients_per_round": 5},
    "recharge": {"battery_joules": 2.5},
}

TWO_TASKS = {"task": ["digits,name=a", "digits,name=b"]}


def owners_in(kind: str, name: str) -> list[type[Any]]:
    """The classes whose fields are the settings of a choice."""
    if kind == "algorithm":
        return [cls for cls in classes_of({"name": name}) if cls is not None]
    return [CLASSES[kind][name]]


def settings_in(kind: str, name: str) -> dict[str, Any]:
    """The settings of a choice, with the class of each."""
    return {entry.name: owner for owner in owners_in(kind, name) for entry in fields(owner)}


def other_value(owner: type[Choice], name: str) -> Any:
    """A value of a setting that differs from its default."""
    if name in VALUES:
        return VALUES[name]
    (default,) = (entry.default for entry in fields(owner) if entry.name == name)
    kind = without_none(get_type_hints(owner)[name])
    assert default not in (None, MISSING), f"{owner.name} {name}: name a value in VALUES"
    if get_origin(kind) is Literal:
        return next(value for value in get_args(kind) if value != default)
    if kind is bool:
        return not default
    if isinstance(default, tuple):
        return tuple(2 * value for value in default)
    if name.endswith("height_m"):
        return default * 1.25
    return default + 1 if kind is int else (default / 2 or 0.25)


def cases() -> Iterator[Any]:
    """Kind, name and setting of each case; None stands for a choice without settings."""
    for kind, classes in CLASSES.items():
        for name in classes:
            if name == "none" and kind in OPTIONAL:  # the same run as without a table
                continue
            for setting in (None, *settings_in(kind, name)):
                yield pytest.param(kind, name, setting, id=f"{kind}-{name}-{setting}")


CASES = [*cases()]
OTHERS = {
    "algorithm": ("fedavg", "hist", "scaffold", "fedast"),
    "dataset": ("mnist", "sst2"),
    "uplink": ("tdma", "fixed"),
    "schedule": ("rounds", "buffered", "simultaneous"),
    "split": ("iid", "dirichlet"),
    "model": ("mlp", "linear"),
    "lr_schedule": ("constant", "poly"),
    "uplink_compression": ("sign", "top-k"),
    "downlink_compression": ("quantisation", "top-k"),
    "select": ("random", "power-of-choice"),
    "layout": ("section-vi-c", "hexagonal", "file"),
    "path_loss": ("umi", "log-distance"),
    "fading": ("rayleigh", "rician"),
    "mobility": ("none", "waypoint"),
    "failures": ("none", "waterfall", "outage"),
    "delays": ("wireless", "shifted-exponential"),
    "assignment": ("random", "bayes"),
    "warm_start": ("previous", "proposed"),
    "presence": ("labels", "arrivals"),
    "loss": ("cross-entropy", "mse"),
    "assigner": ("nested", "rolling"),
    "recharge": ("constant", "harvest"),
}
"""Choices to switch to."""


@cache
def made(kind: str, name: str, setting: str | None) -> tuple[Config, Any]:
    """A configuration with this choice, and the value of the setting, which is not the default."""
    flags = {**KIND_NEEDS.get(kind, {}), **CHOICE_NEEDS.get((kind, name), {}), kind: name}
    value = None
    if setting is not None:
        names = settings_in(kind, name)
        owner = names[setting]
        value = other_value(owner, setting)
        flags |= {
            key: v for key, v in NEEDS.get(setting, {}).items() if key in names or key in CLASSES
        }
        if setting == "staleness_exponent":
            flags |= {"schedule": "buffered"}
        if SEVERAL_TASKS in needs_of(owner).get(setting, ()):
            flags |= TWO_TASKS
        if setting == "deadline":
            flags["budget"] = "deadline"
        if setting == "mask_overlap" and "masks" in names:
            flags["masks"] = "partition"
        flags[prefix_of(kind) + setting] = value
    return Config.from_flags(flags.pop("algorithm", "fedavg"), **flags), value


def plain(value: Any) -> Any:
    """The value as TOML represents it."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("kind", "name", "setting"), CASES)
def test_every_setting_of_every_choice_is_stored_and_read_back(
    kind: str, name: str, setting: str | None
) -> None:
    """The file has only keys of its choices."""
    config, value = made(kind, name, setting)
    text = config.to_toml()
    stored = tomllib.loads(text)
    assert stored[kind]["name"] == name
    if setting is not None:
        owner = settings_in(kind, name)[setting]
        (default,) = (entry.default for entry in fields(owner) if entry.name == setting)
        chosen = config.choice(kind).all_settings()
        assert stored[kind][setting] == plain(chosen[setting]) == plain(value) != default
    again = Config.of(stored)
    assert again == config
    assert again.to_toml() == text
    assert again == config
    assert [*again.tasks.values()] == [*config.tasks.values()]
    for section, table in stored.items():
        if section in CLASSES:
            known = {"name", *config.choice(section).all_settings()}
            assert table.keys() <= known, section
        elif section != "task":
            assert table.keys() <= vars(SECTIONS[section]()).keys(), section


def others(kind: str, config: Config) -> Iterator[str]:
    """Names of other choices of the kind that are valid with the stored settings."""
    for name in OTHERS[kind]:
        cells = name == "hist" and config.named("schedule") != "rounds"
        tasks = kind == "schedule" and (name == "simultaneous") != bool(config.task)
        if name != config.named(kind) and not cells and not tasks:
            yield name


@cache
def fresh(kind: str, name: str, algorithm: str) -> Choice:
    """A choice with its own defaults."""
    flags = {**KIND_NEEDS.get(kind, {}), **CHOICE_NEEDS.get((kind, name), {}), kind: name}
    made = Config.merged({"algorithm": algorithm}, flags)
    choice: Choice = made.choice(kind)
    return choice


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("kind", "name", "setting"), CASES)
def test_a_flag_that_switches_a_choice_drops_its_settings(
    kind: str, name: str, setting: str | None
) -> None:
    """The new choice has its own defaults; other settings of the file are kept.

    A choice without settings switches to every other, and each setting is dropped by one of them.
    """
    config, _ = made(kind, name, setting)
    stored = tomllib.loads(config.to_toml())
    known = [*others(kind, config)]
    if setting is not None and known:
        known = [known[[*settings_in(kind, name)].index(setting) % len(known)]]
    for other in known:
        flags = {**CHOICE_NEEDS.get((kind, other), {}), kind: other}
        switched = Config.merged(stored, flags)
        assert switched.choice(kind) == fresh(kind, other, config.named("algorithm"))
        for section, table in tomllib.loads(switched.to_toml()).items():
            if section in SECTIONS and section in stored:
                for key in table.keys() & stored[section].keys():
                    assert table[key] == flags.get(key, stored[section][key])


@pytest.mark.parametrize("algorithm", ["fedavg", "hist"])
def test_configurations_can_be_sent_to_other_processes(algorithm):
    config = Config.from_flags(algorithm, clients=4)
    assert config.frame is not None
    found = pickle.loads(pickle.dumps(config))
    assert found == config
    assert found.frame == config.frame
