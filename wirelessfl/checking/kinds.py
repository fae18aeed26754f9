"""What can be checked: the contracts of each kind, and how its runs are set up.

A kind with contracts of its own is an entry of ``_CHECKED``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from torch import Tensor, nn

from channels import Access, Network
from wirelessfl.algorithms import Method
from wirelessfl.assigners import Assigner
from wirelessfl.checking import (
    algorithms,
    assignments,
    downlink,
    learning,
    losses,
    metrics,
    networks,
    radio,
    selections,
    splits,
    trial_data,
    uplinks,
    warm_starts,
    watchers,
)
from wirelessfl.checking.contract import Contract
from wirelessfl.checking.runs import BASIC, CREATED, PICKLED
from wirelessfl.checking.subject import Settings, small_data
from wirelessfl.config.choices import KINDS
from wirelessfl.config.own_network import own_network
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError
from wirelessfl.generators import seeded_generators
from wirelessfl.guard import calling
from wirelessfl.metrics import Metric
from wirelessfl.observers import Observer
from wirelessfl.runs.given_code import path_of_function
from wirelessfl.schedules import Schedule
from wirelessfl.wording import shown

FOLDERS = ("folder", "path", "root", "directory", "data_path", "data_root", "where", "_")
"""Names that mark a function's only argument as the data folder: the function is a data set."""
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
PLAIN = (CREATED, PICKLED, *BASIC)
REQUESTS: Settings = {"schedule": "buffered", "requests": 3, "buffer": 2, "eval_every": 1}


def _plain_data(given: Any, path: str, settings: Settings) -> tuple[Dataset | None, Settings]:
    return small_data(), {}


def _of_network(given: Any, path: str, settings: Settings) -> tuple[Dataset | None, Settings]:
    network = own_network(path, networks.SEED)
    more = {"algorithm": "hfedavg"} if network.cells > 1 else {}
    return trial_data.of_network(network), more


@dataclass(frozen=True)
class Checked:
    """A kind that can be checked.

    Args:
        contracts: its contracts, in order; a contract comes after those that it needs.
        base: settings of its runs, besides those of all runs; or a function of the class.
        data: returns the data set of its runs, None if it is one itself, and further settings of
            its runs; gets the class or function, its import path and its settings.
    """

    contracts: tuple[Contract, ...]
    base: Settings | Callable[[Any], Settings] = field(default_factory=dict)
    data: Callable[[Any, str, Settings], tuple[Dataset | None, Settings]] = _plain_data

    def settings(self, given: Any) -> Settings:
        """Settings of the runs of a class or function."""
        return self.base(given) if callable(self.base) else self.base


def _of_algorithm(cls: type[Method]) -> Settings:
    return {"cells": 2} if cls.topology == "cells" else {}


def _of_assigner(cls: type[Assigner]) -> Settings:
    return {"algorithm": "hfedavg", "cells": 2} if cls.of_cells else {}


def _of_schedule(cls: type[Schedule]) -> Settings:
    """Settings that give the schedule work of its kind."""
    if cls.work == "rounds":
        return {}
    if cls.work == "requests":
        having = {entry.name for entry in fields(cls)}
        given = {name: value for name, value in REQUESTS.items() if name in having}
        return {"eval_every": 1, "rounds": 6, **given}
    return {"clients_per_round": 4}


SESSIONS: Settings = {"sessions": 2, "rounds": 2}
_CHECKED: Mapping[str, Checked] = {
    "algorithm": Checked(algorithms.CONTRACTS, _of_algorithm),
    "split": Checked(splits.CONTRACTS),
    "model": Checked(learning.MODEL),
    "dataset": Checked(learning.DATASET, data=lambda given, path, settings: (None, {})),
    "lr_schedule": Checked(downlink.STEP_SIZES),
    "compression": Checked(downlink.COMPRESSION),
    "assigner": Checked(PLAIN, _of_assigner),
    "select": Checked(selections.CONTRACTS, {"clients_per_round": 3}),
    "path_loss": Checked(PLAIN, {"layout": "disc"}),
    "fading": Checked(radio.FADING),
    "uplink": Checked(uplinks.CONTRACTS),
    "failures": Checked(radio.FAILURES, {"snr_db": -5}),
    "schedule": Checked(PLAIN, _of_schedule),
    "delays": Checked(PLAIN, {**REQUESTS, "step_seconds": 0.1}),
    "assignment": Checked(
        assignments.CONTRACTS, {"schedule": "simultaneous", "clients_per_round": 4}
    ),
    "warm_start": Checked(warm_starts.CONTRACTS, SESSIONS),
    "presence": Checked(PLAIN, SESSIONS),
    "loss": Checked(losses.CONTRACTS, data=trial_data.of_loss),
    "metric": Checked(metrics.CONTRACTS, data=trial_data.of_metric),
    "network": Checked(networks.CONTRACTS, {"clients": None, "chunk": None}, _of_network),
    "observer": Checked(watchers.CONTRACTS, {"rounds": 6}),
}
CHECKED = {**_CHECKED, **{kind: Checked(PLAIN) for kind in KINDS if kind not in _CHECKED}}
"""The kinds that can be checked, by the name of the setting that selects one."""


def _of_outputs(function: Callable[..., Any]) -> str:
    """The kind of a function of outputs and labels: a loss has a gradient.

    Raises:
        ConfigError: no labels fit, so the kind is unclear.
    """
    for _, data in trial_data.labelled():
        outputs, labels = trial_data.outputs_and_labels(data, trial_data.STREAM)
        try:
            with trial_data.tried():
                found = function(outputs.requires_grad_(), labels)
        except Exception:  # users' code may raise anything for labels that it does not know
            continue
        return "loss" if isinstance(found, Tensor) and found.requires_grad else "metric"
    raise ConfigError(
        f"{path_of_function(function)} fails for random outputs and labels, so its kind cannot be "
        "told: name it, loss or metric."
    )


def _of_nothing(function: Callable[..., Any]) -> str:
    """The kind of a function without arguments, from what it returns.

    Raises:
        ConfigError: it returns neither a network nor an observer.
    """
    with (
        calling(f"{path_of_function(function)}()", ConfigError),
        seeded_generators(trial_data.STREAM),
    ):
        found = function()
    if isinstance(found, Network | Observer):
        return "network" if isinstance(found, Network) else "observer"
    raise ConfigError(
        f"{path_of_function(function)} returns {shown(found)}, which matches no kind: set "
        f"kind to one of {', '.join(CHECKED)}."
    )


def kind_of(given: Any) -> str:
    """The kind of a class or function.

    Raises:
        ConfigError: the kind is unclear.
    """
    if isinstance(given, type):
        bases: dict[str, type[Any]] = {
            "algorithm": Method,
            **{kind: KINDS[kind].base for kind in KINDS},
            "metric": Metric,
            "observer": Observer,
        }
        for kind, base in bases.items():
            if issubclass(given, base):
                return kind
        if issubclass(given, Access):
            return "uplink"
        if issubclass(given, nn.Module):
            return "model"
    elif isinstance(given, Observer):
        return "observer"
    elif isinstance(given, Network):
        return "network"
    elif callable(given):
        parameters = [*inspect.signature(given).parameters.values()]
        names = {entry.name for entry in parameters}
        needed = [
            p
            for p in parameters
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if {"input_shape", "classes"} <= names:
            return "model"
        if "data_dir" in names or (len(needed) == 1 and needed[0].name in FOLDERS):
            return "dataset"
        if [entry.name for entry in needed] == ["stream"]:
            return "network"
        if len(needed) == 2:
            return _of_outputs(given)
        if not needed:
            return _of_nothing(given)
    raise ConfigError(
        f"{shown(given)} matches no kind: derive it from the base class of its "
        f"kind, or set kind to one of {', '.join(CHECKED)}."
    )
