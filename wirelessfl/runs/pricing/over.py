"""The settings of a run over another radio; what trains its model stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import absolute, is_import_path
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.config.given import LINK_KINDS, replaced_by_network
from wirelessfl.config.tables import flag_places, given_places, tables_from_flags
from wirelessfl.runs.build.given import check_objects
from wirelessfl.runs.pricing.same_training import name_of, of_radio

Settings = Mapping[str, Any]
"""Settings by name."""


@dataclass(frozen=True)
class Radio:
    """Another radio, as a user gives it.

    Args:
        uplink: name of an uplink, or its settings. With a name, they replace those of the run.
        network: a network, the import path of one, or settings of the network, layout, path loss
            and fading by the names of their flags.
        flags: further settings of the radio by the names of their flags.
    """

    uplink: str | Settings | None = None
    network: Network | str | Settings | None = None
    flags: Settings | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.uplink, str | Mapping | None):
            raise ConfigError(
                f"uplink is {shown(self.uplink)}: give the name of an uplink, or its settings, "
                'such as {"name": "ofdma", "allocation": "optimal"}.'
            )
        path = isinstance(self.network, str) and is_import_path(self.network)
        if not (path or isinstance(self.network, Mapping)):
            check_objects(network=self.network)

    @property
    def given(self) -> Network | None:
        """The network, if it is given as an object."""
        return self.network if isinstance(self.network, Network) else None


def over(config: Config, radio: Radio) -> Config:
    """The settings of a run over another radio, resolved.

    Settings of the run that have no effect there are dropped.

    Args:
        config: the settings of the run.
        radio: what differs.

    Raises:
        ConfigError: a setting is wrong, or is not one of the radio.
    """
    tables = config.given_tables()
    if name_of(config, "failures", "none") == "none":
        tables.pop("failures", None)  # not every uplink has failures
    flags = dict(radio.flags or {})
    named = flags.pop("uplink", radio.uplink)
    if isinstance(named, str):
        tables["uplink"] = {"name": named}
    elif named is not None:
        kept = {} if "name" in named else tables.get("uplink", {})
        tables["uplink"] = {**kept, **named}
    network = radio.network
    if isinstance(network, Mapping):
        flags, network = flags | dict(network), None
    network = flags.pop("network", network)
    if network is not None:
        tables = _replaced(tables, network)
    before = given_places(tables)
    merged = tables_from_flags(tables, flags)
    places = flag_places(merged, flags)
    for flag, place in places.items():
        if not of_radio(*place):
            raise ConfigError(_refusal(flag, flags[flag]))
    new = {*places.values()}
    if named is not None:
        new |= {("uplink", key) for key in tables["uplink"]}
    there = Config.of(merged, loose=before - new)
    _check_same(config, there)
    return there


def _replaced(tables: dict[str, Any], network: Network | str) -> dict[str, Any]:
    """The tables without what a network replaces, and with the network."""
    kept = {name: table for name, table in tables.items() if name not in LINK_KINDS}
    gone = replaced_by_network()
    links = {key: value for key, value in kept.get("network", {}).items() if key not in gone}
    marks = {key: value for key, value in (kept.get("given") or {}).items() if key != "network"}
    if isinstance(network, str):
        links["network"] = absolute(network)
    else:
        marks["network"] = {"cells": network.cells, "clients": network.clients}
    return kept | {"network": links, "given": marks}


def _refusal(flag: str, value: object) -> str:
    words = value if isinstance(value, str) else shown(value)
    option = f"--{flag.replace('_', '-')} {words}"
    return (
        f"{flag}={words} changes the training, or which clients there are: a price has the "
        "cells, clients, seed and training of its run. Train it there: wirelessfl run --config "
        f"RUN/config.toml {option} --out NEW."
    )


def _check_same(here: Config, there: Config) -> None:
    """Refuse a radio over which a setting of training has no effect."""
    found = [
        {
            (section, key): value
            for section, table in config.used_tables().items()
            if section != "given" and isinstance(table, Mapping)
            for key, value in table.items()
            if not of_radio(section, key)
            and (section, key) != ("network", "network")
            and not (section == "network" and key in ("cells", "clients"))
        }
        for config in (here, there)
    ]
    lost = [place for place in found[0] if found[0][place] != found[1].get(place)]
    if lost:
        raise ConfigError(
            f"{lost[0][1]}={found[0][lost[0]]} of the run has no effect over the other radio, so "
            "that the training differs. Train the run there."
        )
