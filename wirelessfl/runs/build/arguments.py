"""Checks arguments of ``run``, ``resume`` and ``build``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path

import torch

from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.engine.rounds.redesign import Redesign
from wirelessfl.models.metrics import check_name
from wirelessfl.training.workers.shards import Shards

OBJECTS: dict[str, tuple[Callable[[], type], str]] = {
    "model": (
        lambda: torch.nn.Module,  # on demand: prices without a module need no PyTorch
        'give an nn.Module instance, such as MyModel(); names such as "fcnn" are settings',
    ),
    "network": (
        lambda: Network,
        "give a channels.Network, or the path of a function, module:function; numbers of cells "
        "and clients are settings",
    ),
    "redesign": (
        lambda: Redesign,
        "give an instance of a class that derives from wirelessfl.Redesign",
    ),
    "shards": (
        lambda: Shards,
        "give the object that wirelessfl.training.workers.shards.sharded() yields, or leave it out",
    ),
}


def check_objects(**objects: object) -> None:
    """Refuse objects of the wrong type; None means not given.

    Args:
        objects: arguments by name; arguments that are not in ``OBJECTS`` must be functions.

    Raises:
        ConfigError: an argument has the wrong type; the message names it.
    """
    for name, given in objects.items():
        if given is None and name != "shards":
            continue
        if name in OBJECTS:
            kind, remedy = OBJECTS[name]
            if not isinstance(given, kind()):
                raise ConfigError(f"{name} is {shown(given)}: {remedy}.")
        elif not callable(given):
            raise ConfigError(
                f"{name} is {shown(given)}: give a function of one argument, or leave it out."
            )


def check_functions(loss: object, metrics: object, functions: Mapping[str, object]) -> None:
    """Refuse losses and metrics that are neither names nor functions.

    Args:
        loss: the given loss; None for none.
        metrics: the given metrics; None for none.
        functions: those that are not names, by name of the field of rows.

    Raises:
        ConfigError: the message names the argument.
    """
    usable = isinstance(loss, str) or (callable(loss) and not isinstance(loss, type))
    if loss is not None and not usable:
        raise ConfigError(
            f"loss is {shown(loss)}: give a function f(outputs, labels), or the name of a loss."
        )
    for name, function in functions.items():
        if isinstance(function, str):
            raise ConfigError(
                f"metrics[{name!r}] is {function!r}: a dict has functions by name; give names in a "
                f"list, metrics=[{function!r}, my_function]."
            )
        if isinstance(function, type) or not callable(function):
            raise ConfigError(
                f"metrics[{name!r}] is {shown(function)}: give a function f(outputs, labels)."
            )
        check_name(name)
    if isinstance(metrics, Sequence) and len(functions) < sum(
        not isinstance(entry, str) for entry in metrics
    ):
        raise ConfigError(
            f"metrics has two functions of the same name, {', '.join(functions)}: give a dict of "
            "functions by name."
        )


def check_settings(config: object) -> None:
    """Raise unless ``config`` is a configuration, tables of settings or a path.

    Raises:
        ConfigError: it is of another type.
    """
    if not isinstance(config, Config | Mapping | str | PathLike):
        raise ConfigError(
            f"config is {shown(config)}: give a wirelessfl.Config, tables of settings, or the path "
            "of a TOML file."
        )


def path_of_run(path: object) -> Path:
    """The path of a run directory, which may begin with ``~``.

    Raises:
        ConfigError: it is of another type.
    """
    if not isinstance(path, str | PathLike):
        raise ConfigError(f"path is {shown(path)}: give the path of a run directory.")
    return expanded(path)
