"""A configuration and the Python objects that a run gets beside it."""

from __future__ import annotations

from typing import Any

from torch import nn

from channels import Network
from wirelessfl.config import Config
from wirelessfl.config.given import chosen, replaced_by_network
from wirelessfl.config.tasks import OWN
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError


def with_given(
    config: Config,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
) -> Config:
    """The configuration of the run that these settings and objects describe, checked as a whole.

    Args:
        config: settings; those that the user gave are in ``model_fields_set`` of their section.
        model: replaces the configured model.
        data: replaces the configured data set.
        network: replaces the configured network.

    Returns:
        The settings, with the objects marked in ``given``.

    Raises:
        ConfigError: the settings need an object that is absent, the network replaces a setting
            that was given too, or settings and network do not go together.
    """
    check_given(config, model=model, data=data, network=network)
    tables: dict[str, Any] = config.model_dump(exclude_unset=True)
    given: dict[str, Any] = {}
    if model is not None:
        given["model"] = type(model).__name__
    if data is not None:
        given["data"] = data.name
    if network is None:  # the configured network: its defaults count from now on
        tables["network"] = config.network.model_dump()
    else:
        _check_replaced(config)
        if config.build_algorithm().topology == "star" and network.cells > 1:
            raise ConfigError(
                f"algorithm {config.algorithm['name']!r} is a star, and the network has "
                f"{network.cells} cells."
            )
        given["network"] = {"cells": network.cells, "clients": network.clients}
    return Config.of(tables | {"given": given})


def check_given(config: Config, **things: object) -> None:
    """Refuse settings that describe a run only together with objects that are not there.

    Args:
        config: settings.
        things: the objects that are there, by name.

    Raises:
        ConfigError: an object is absent, or is another network; the message names it.
    """
    absent = [name for name in config.given.names if things.get(name) is None]
    if absent:
        objects = ", ".join(f"{name}=..." for name in absent)
        raise ConfigError(
            f"the settings belong to a run with {objects} given to wirelessfl.run, and do not "
            f"describe {'it' if len(absent) == 1 else 'them'}: give the same from Python, "
            f"wirelessfl.run(config, {objects})."
        )
    marked, network = config.given.network, things.get("network")
    if marked is None or not isinstance(network, Network):
        return
    if (marked.cells, marked.clients) != (network.cells, network.clients):
        raise ConfigError(
            f"the settings belong to a network of {marked.clients} clients in {marked.cells} "
            f"cells, and network=... has {network.clients} in {network.cells}: give the same "
            "network, or leave out [given]."
        )


def _check_replaced(config: Config) -> None:
    """Refuse settings that the given network replaces.

    Raises:
        ConfigError: there are such; the message names all of them.
    """
    keys = replaced_by_network(config.network)
    said = [f"{key}={value}" for key, value in chosen(config.network).items()]
    said += [
        f"{key}={table[key]} of task {table['name']!r}"
        for table in config.task
        for key in OWN["network"]
        if key in keys and key in table
    ]
    if said:
        raise ConfigError(
            f"network=... is given to wirelessfl.run and replaces {', '.join(said)}: leave "
            f"{'this setting' if len(said) == 1 else 'these settings'} out, or the network."
        )
