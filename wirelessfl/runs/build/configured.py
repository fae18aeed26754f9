"""The configuration of a run: settings and the objects that replace some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import absolute, expanded
from wirelessfl.base.wording import count_of, shown
from wirelessfl.config import Config
from wirelessfl.config.choices import TASK_SETTINGS, task_names
from wirelessfl.config.named import (
    LINK_KINDS,
    GivenSection,
    absolute_name,
    replaced_by_network,
)
from wirelessfl.config.sections.training import listed
from wirelessfl.config.settings import Settings
from wirelessfl.config.tables import read_toml
from wirelessfl.runs.build.given import NOTHING, Given, GivenObjects, GivenTraining, check_functions


def configured_call(
    function: Callable[..., Any],
    config: Config | Mapping[str, Any] | str | Path,
    given: Given | GivenTraining,
    trust: bool = False,
) -> tuple[Config, GivenObjects]:
    """The resolved configuration and the checked objects of a call of an entry point.

    Raises:
        ConfigError: as for ``configured``, or an object has a wrong type or form.
        DataError: given samples do not form a data set.
        TypeError: a keyword is unknown.
    """
    objects = GivenObjects.of(function, given)
    network = given.get("network")
    path = network if isinstance(network, str) else None
    return configured(config, objects, trust, network=path), objects


def configured(
    config: Config | Mapping[str, Any] | str | Path,
    objects: GivenObjects = NOTHING,
    trust: bool = False,
    network: str | None = None,
) -> Config:
    """The resolved configuration of a run with these settings and given objects.

    Args:
        config: a configuration, nested tables of settings, or the path of a TOML file.
        objects: Python objects that replace settings.
        trust: whether a TOML file may name code to import.
        network: import path of the network; None for that of the settings.

    Returns:
        The settings, resolved, with the objects marked in ``given``.

    Raises:
        ConfigError: an object that the settings need is missing, an object replaces a setting that
            is also given, settings conflict, or a file names code without being trusted.
    """
    check_settings(config)
    tables = read_toml(Path(config), trust) if isinstance(config, str | PathLike) else config
    if network is None and all(value is None for value in vars(objects).values()):
        made = tables if isinstance(tables, Config) else Config.of(tables)
        check_given(made.given)
        return made.with_known_network()
    settings = tables if isinstance(tables, Config) else Settings.read(tables)
    check_network_name(settings, network)
    _check_names(settings, objects)
    check_given(settings.given, objects)
    _check_replaced(settings, objects)
    made = Config.with_objects(settings, objects.marks, _flags(settings, network, objects))
    _check_drawn(made, objects)
    return made if objects.network is not None else made.with_known_network()


def _flags(settings: Settings, network: str | None, objects: GivenObjects) -> dict[str, Any]:
    """The choices and values that follow from the objects and the network's path, by flag."""
    flags: dict[str, Any] = {} if network is None else {"network": network}
    if objects.data is not None:  # its name may be given, e.g. for its published step time
        flags["dataset"] = None
    if isinstance(objects.loss, str):
        flags["loss"] = objects.loss
    if objects.metric_names:
        flags["metric"] = objects.metric_names
    cells = objects.network or network or settings.network.network
    if objects.split is not None and not (cells or ("network", "clients") in settings.places):
        flags["clients"] = len(objects.split)
    return flags


def _check_drawn(config: Config, objects: GivenObjects) -> None:
    """Refuse a given model that a warm start would draw anew."""
    warm_start, model = config.warm_start, objects.model
    if warm_start is not None and warm_start.draws and model is not None:
        raise ConfigError(
            f'warm_start="{warm_start.title}" draws new models, but the model, '
            f"{type(model).__name__}, is a given object. Name a model that can be built, or "
            "choose another warm start."
        )


def _check_names(settings: Settings, objects: GivenObjects) -> None:
    check_functions(objects.loss, objects.metrics, objects.functions)
    stated = any(kind == "loss" for kind, _ in settings.places)
    name = {"name": absolute(objects.loss)}
    if isinstance(objects.loss, str) and stated and settings.tables["loss"] != name:
        raise ConfigError(
            f"loss={objects.loss!r} is given to wirelessfl.run, and so is a table [loss]: leave "
            "one out."
        )
    other = settings.evaluation.metric
    if objects.metric_names and other and other != listed(objects.metric_names):
        raise ConfigError(
            "metrics=... is given to wirelessfl.run, and so is metric in [evaluation]: leave "
            "one out."
        )


def check_network_name(settings: Settings, network: object) -> None:
    """Raise if ``network`` is the import path of another network than that of the settings.

    Raises:
        ConfigError: the settings name another network.
    """
    name = settings.network.network
    if isinstance(network, str) and name not in (None, absolute(network)):
        raise ConfigError(f"network is {network!r}, but the settings name {name!r}: choose one.")


def check_given(marks: GivenSection, supplied: GivenObjects = NOTHING) -> None:
    """Raise unless the objects that the settings need are given.

    Args:
        marks: the settings' ``[given]`` table.
        supplied: the given objects.

    Raises:
        ConfigError: an object is missing, or the network has another size; the message names it.
    """
    there = supplied.marks
    absent = [name for name in marks.names if getattr(there, name) is None]
    if absent:
        objects = ", ".join(f"{name}=..." for name in absent)
        raise ConfigError(
            f"the settings belong to a run with {objects} given to wirelessfl.run, and do not "
            f"describe {'it' if len(absent) == 1 else 'them'}: give {objects} again from Python."
        )
    if marks.network is None or there.network is None or marks.network == there.network:
        return
    raise ConfigError(
        f"the settings belong to a network of {count_of(marks.network.clients, 'client')} in "
        f"{count_of(marks.network.cells, 'cell')}, but network=... has {there.network.clients} in "
        f"{there.network.cells}: give the same network, or leave out [given]."
    )


def _check_replaced(settings: Settings, objects: GivenObjects) -> None:
    marks, before = objects.marks, settings.given
    replaced: dict[str, list[str]] = {}
    if marks.model is not None and before.model is None:
        replaced["model"] = _stated(settings, "model", but="layers")
    if marks.data is not None and before.data is None:
        same = settings.named("dataset") == absolute_name("dataset", marks.data)
        replaced["data"] = _stated(settings, "dataset", but="name" if same else "")
    if marks.split is not None and before.split is None:
        replaced["split"] = _stated(settings, "split")
    if marks.network is not None:
        replaced["network"] = _replaced_by_network(settings)
    if marks.loss is not None and before.loss is None:
        replaced["loss"] = _stated(settings, "loss")
    for name, entries in replaced.items():
        if entries:
            raise ConfigError(
                f"{name}=... is given to wirelessfl.run and replaces {', '.join(entries)}: leave "
                f"{'this setting' if len(entries) == 1 else 'these settings'} out, or the {name}."
            )


def _stated(settings: Settings, kind: str, but: str = "") -> list[str]:
    """The given settings of a choice, as ``name=value``."""
    return [
        f"{kind if key == 'name' else key}={value}"
        for key, value in settings.tables.get(kind, {}).items()
        if (kind, key) in settings.places and key != but
    ]


def _replaced_by_network(settings: Settings) -> list[str]:
    """Given settings that a given network replaces, as ``name=value``."""
    names = task_names(settings.task, settings.dataset.title)
    replaced = [f"{key}={value}" for key, value in settings.replaced_by_network().items()]
    replaced += [entry for kind in LINK_KINDS for entry in _stated(settings, kind)]
    keys = replaced_by_network(settings.frame.radio)
    return replaced + [
        f"{key}={table[key]} of task {name!r}"
        for name, table in zip(names, settings.task, strict=True)
        for key in TASK_SETTINGS["network"]
        if key in keys and key in table
    ]


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
