"""Python objects given to a run instead of settings, checked against its configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from channels import Network
from wirelessfl.config import Config
from wirelessfl.config.given import Given, GivenNetwork, chosen, replaced_by_network
from wirelessfl.config.settings import Settings
from wirelessfl.config.tables import checked_tables, given_places, read_toml
from wirelessfl.config.task_tables import TASK_SETTINGS, task_names
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError
from wirelessfl.setup.arguments import check_settings


@dataclass(frozen=True, eq=False)
class GivenObjects:
    """Python objects that a run gets instead of settings.

    Args:
        model: module trained instead of the configured model, from its present weights.
        data: data set used instead of the configured one.
        network: network used instead of the configured one and its settings.
    """

    model: nn.Module | None = None
    data: Dataset | None = None
    network: Network | None = None

    @property
    def marks(self) -> Given:
        """The marks that settings carry for these objects."""
        network = self.network
        return Given(
            model=None if self.model is None else type(self.model).__name__,
            data=None if self.data is None else self.data.name,
            network=None
            if network is None
            else GivenNetwork(cells=network.cells, clients=network.clients),
        )


NOTHING = GivenObjects()


def configured(
    config: Config | Mapping[str, Any] | str | Path, given: GivenObjects = NOTHING
) -> Config:
    """The checked configuration of a run with these settings and objects.

    Args:
        config: a configuration, nested tables of settings, or the path of a TOML file.
        given: objects instead of settings.

    Returns:
        The settings, resolved, with the objects marked in ``given``.

    Raises:
        ConfigError: the settings need an object that is absent, an object replaces a setting that
            was given too, or settings and network conflict.
    """
    check_settings(config)
    if isinstance(config, Config):  # without defaults, which a given network may replace
        tables: dict[str, Any] = config.given_tables()
    else:
        tables = dict(config) if isinstance(config, Mapping) else read_toml(Path(config))
    settings, marks = Settings(**checked_tables(tables)), given.marks
    check_given(settings.given, given)
    _check_replaced(tables, settings, given)
    loose: set[tuple[str, str]] = set()
    if given.network is None:  # the configured network: its defaults count from now on
        explicit = given_places(tables)
        tables["network"] = settings.network.model_dump()
        loose = given_places(tables) - explicit
    return Config.of(tables | {"given": marks.model_dump(exclude_none=True)}, loose=loose)


def check_given(marks: Given, given: GivenObjects = NOTHING) -> None:
    """Refuse settings of a run with given objects if those are absent.

    Args:
        marks: marks of the settings.
        given: the objects at hand.

    Raises:
        ConfigError: an object is absent, or is another network; the message names it.
    """
    there = given.marks
    absent = [name for name in marks.names if getattr(there, name) is None]
    if absent:
        objects = ", ".join(f"{name}=..." for name in absent)
        raise ConfigError(
            f"the settings belong to a run with {objects} given to wirelessfl.run, and do not "
            f"describe {'it' if len(absent) == 1 else 'them'}: give the same from Python, "
            f"wirelessfl.run(config, {objects})."
        )
    if marks.network is None or there.network is None or marks.network == there.network:
        return
    raise ConfigError(
        f"the settings belong to a network of {marks.network.clients} clients in "
        f"{marks.network.cells} cells, and network=... has {there.network.clients} in "
        f"{there.network.cells}: give the same network, or leave out [given]."
    )


def _check_replaced(tables: Mapping[str, Any], settings: Settings, given: GivenObjects) -> None:
    """Refuse settings that the given objects replace.

    Raises:
        ConfigError: there are such; the message names all of them.
    """
    places = given_places(tables)
    replaced: dict[str, list[str]] = {"model": [], "data": [], "network": []}
    if given.model is not None and settings.given.model is None:
        table = settings.model
        keys = [key for key in table if ("model", key) in places and key != "layers"]
        replaced["model"] = [f"{'model' if k == 'name' else k}={table[k]}" for k in keys]
    if given.data is not None and settings.given.data is None:
        keys = ["dataset"] if ("data", "dataset") in places else []
        replaced["data"] = [f"dataset={settings.data.dataset}" for _ in keys]
    if given.network is not None:
        replaced["network"] = _replaced_by_network(settings, places)
    for name, said in replaced.items():
        if said:
            raise ConfigError(
                f"{name}=... is given to wirelessfl.run and replaces {', '.join(said)}: leave "
                f"{'this setting' if len(said) == 1 else 'these settings'} out, or the {name}."
            )


def _replaced_by_network(settings: Settings, places: Collection[tuple[str, str]]) -> list[str]:
    """Settings that were given, and that a given network replaces."""
    radio = settings.frame.radio
    names = task_names(settings.task, settings.data.dataset)
    said = [f"{key}={value}" for key, value in chosen(settings.network, radio).items()]
    said += [
        f"{'fading' if key == 'name' else key}={value}"
        for key, value in (settings.fading or {}).items()
        if ("fading", key) in places
    ]
    keys = replaced_by_network(radio)
    return said + [
        f"{key}={table[key]} of task {name!r}"
        for name, table in zip(names, settings.task, strict=True)
        for key in TASK_SETTINGS["network"]
        if key in keys and key in table
    ]
