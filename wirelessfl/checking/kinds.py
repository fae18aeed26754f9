"""What can be checked: the contracts of each kind, and how its runs are set up.

A new kind is one entry of ``CHECKED``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from torch import nn

from channels import Access
from wirelessfl.algorithms import Algorithm
from wirelessfl.checking import (
    algorithms,
    assignments,
    downlink,
    learning,
    radio,
    selections,
    splits,
    uplinks,
    warm_starts,
)
from wirelessfl.checking.contract import Contract
from wirelessfl.checking.runs import BASIC, CREATED, PICKLED
from wirelessfl.config.kinds import KINDS
from wirelessfl.errors import ConfigError
from wirelessfl.schedules import Schedule
from wirelessfl.wording import shown

FOLDERS = ("folder", "path", "root", "directory", "data_path", "data_root", "where", "_")
"""Names of the only argument of a function, by which it is a data set."""
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Settings = Mapping[str, Any]
PLAIN = (CREATED, PICKLED, *BASIC)
REQUESTS: Settings = {"schedule": "buffered", "requests": 3, "buffer": 2, "eval_every": 1}


@dataclass(frozen=True)
class Checked:
    """A kind that can be checked.

    Args:
        contracts: its contracts, in order; a contract comes after those that it needs.
        base: settings of its runs, besides those of all runs; or a function of the class.
    """

    contracts: tuple[Contract, ...]
    base: Settings | Callable[[Any], Settings] = field(default_factory=dict)

    def settings(self, given: Any) -> Settings:
        """Settings of the runs of a class or function."""
        return self.base(given) if callable(self.base) else self.base


def _of_algorithm(cls: type[Algorithm]) -> Settings:
    return {"cells": 2} if cls.topology == "cells" else {}


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
CHECKED: Mapping[str, Checked] = {
    "algorithm": Checked(algorithms.CONTRACTS, _of_algorithm),
    "split": Checked(splits.CONTRACTS),
    "model": Checked(learning.MODEL),
    "dataset": Checked(learning.DATASET),
    "lr_schedule": Checked(downlink.STEP_SIZES),
    "compression": Checked(downlink.COMPRESSION),
    "select": Checked(selections.CONTRACTS, {"clients_per_round": 3}),
    "layout": Checked(PLAIN),
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
}
"""The kinds that can be checked, by the name of the setting that selects one."""


def kind_of(given: Any) -> str:
    """The kind of a class or function.

    Raises:
        ConfigError: it cannot be told.
    """
    if isinstance(given, type):
        bases: dict[str, type[Any]] = {
            "algorithm": Algorithm,
            **{kind: KINDS[kind].base for kind in KINDS},
        }
        for kind, base in bases.items():
            if issubclass(given, base):
                return kind
        if issubclass(given, Access):
            return "uplink"
        if issubclass(given, nn.Module):
            return "model"
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
    raise ConfigError(
        f"{shown(given)} is of no kind that wirelessfl knows: derive it from the base class of its "
        f"kind, or name the kind, one of {', '.join(CHECKED)}."
    )
