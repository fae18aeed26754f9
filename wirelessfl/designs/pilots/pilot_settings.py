"""The configuration of a pilot: short, up to the target, on validation data, without a radio."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from channels import Network
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.config.tables import given_places
from wirelessfl.designs.pilots.points import Point
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.pricing.same_training import NETWORK, TABLES, dependences

VALIDATION = 0.1
"""Fraction of the training data held out if the settings hold out none."""
EVALUATIONS = 100
"""Evaluations of a pilot, about."""
UP_TO_TARGET = 4
"""Rounds of a pilot over those that it is expected to need to its target."""
FEWEST_ROUNDS = 5
OWN_RUN = ("out", "client_log", "keep_best", "track")
OWN_EVALUATION = ("eval_every", "eval_first", "stop_at_target", "patience", "min_delta", "metric")
OWN_TRAINING = ("rounds", "local_steps", "edge_rounds", "clients_per_round")
"""Settings that a pilot has of its own, or does not need; they are replaced."""


class Size(Protocol):
    """Numbers of clients and cells."""

    @property
    def clients(self) -> int:
        """Number of clients."""

    @property
    def cells(self) -> int | None:
        """Number of cells; None for the default one."""


def check_pilots(config: Config) -> None:
    """Refuse settings whose rounds the learning curve does not describe.

    Raises:
        ConfigError: the message names the setting.
    """
    if not config.regime.common_rounds:
        what = f"schedule {config.named('schedule')!r}"
        if config.regime.in_sessions:
            what = "sessions"
        raise ConfigError(
            f"pilots have common rounds of one model, and the settings have {what}: choose "
            'schedule "rounds" without tasks and sessions.'
        )
    if config.task:
        raise ConfigError(
            "pilots train one model, and the settings have tables of tasks: leave them out."
        )
    if config.training.local_epochs is not None:
        raise ConfigError(
            f"local_epochs={config.training.local_epochs:g} conflicts with pilots, which differ in "
            "local_steps: leave it out."
        )
    monitor = config.evaluation.monitor
    if monitor not in (None, "accuracy", "validation_accuracy"):
        raise ConfigError(
            f"monitor={monitor} conflicts with pilots, whose target is a validation accuracy: "
            "leave it out."
        )


def of_pilot(
    config: Config,
    point: Point,
    steps: int,
    plain: Mapping[str, Any] | None,
    size: Size,
    most_rounds: float = math.inf,
) -> Config:
    """The settings of a pilot.

    Args:
        config: settings of the run to design.
        point: settings of the pilot.
        steps: local steps of a client up to the last round.
        plain: ``[network]`` without a radio; None to keep that of the settings.
        size: numbers of clients and cells of the network.
        most_rounds: limit on its rounds.

    Raises:
        ConfigError: the training depends on the radio, or settings conflict.
    """
    star = config.algorithm.topology == "star"
    tables = _tables(config)
    allowed = given_places(tables)
    each = steps / (point.local_steps * point.edge_rounds)
    rounds = max(math.ceil(min(each, most_rounds)), FEWEST_ROUNDS)
    training = _without(tables, "training", OWN_TRAINING)
    training |= {"local_steps": point.local_steps, "rounds": rounds}
    if not star:
        training["edge_rounds"] = point.edge_rounds
    senders = point.clients or config.training.clients_per_round
    if senders is not None and senders != size.clients:
        training["clients_per_round"] = senders
    elif config.training.clients_per_round is not None:
        tables.pop("select", None)
    evaluation = _without(tables, "evaluation", OWN_EVALUATION)
    expected = rounds
    if evaluation.get("target") is not None:
        evaluation["stop_at_target"] = True
        expected = rounds // UP_TO_TARGET
    evaluation["eval_every"] = max(expected // EVALUATIONS, 1)
    data = dict(tables.get("data") or {})
    data["validation_fraction"] = config.data.validation_fraction or VALIDATION
    table = submodel_table(config.tables)
    submodels = _without(tables, table, ("mask_sizes", "mask_shares", "size_cap"))
    submodels["name"] = config.named(table)
    if point.shares is not None:
        submodels |= {"mask_sizes": "fixed", "mask_shares": point.shares}
    parts = {table: submodels, "training": training, "evaluation": evaluation, "data": data}
    tables |= parts | {"run": _without(tables, "run", OWN_RUN)}
    if point.snr_db is not None:
        return _over_the_air(config, tables, point.snr_db)
    tables.pop("uplink", None)
    if plain is not None:
        tables = {k: v for k, v in tables.items() if k not in TABLES} | {"network": dict(plain)}
    made = Config.of(tables, loose=allowed)
    for reason in dependences(made):
        raise ConfigError(f"pilots train without a radio, but {reason}. Leave it out for pilots.")
    return made


def plain_network(config: Config, network: Network | None = None) -> dict[str, Any] | None:
    """``[network]`` without a radio, so that pilots of other networks are the same runs.

    Args:
        config: settings of the run to design.
        network: the network, if it replaces that of the settings.

    Returns:
        The table; None if clients are in other cells than those of the default network.
    """
    stream = Stream(config.run.seed)
    if network is None:
        network = build_network(config.network, stream, config)
    tables = _tables(config)
    allowed = given_places(tables)
    table = {
        key: value
        for key, value in (tables.get("network") or {}).items()
        if key not in (*NETWORK, "network")
    }
    table["clients"] = network.clients
    if config.algorithm.topology != "star":
        table["cells"] = network.cells
    tables = {k: v for k, v in tables.items() if k not in TABLES} | {"network": table}
    plain = Config.of(tables, loose=allowed)
    default = build_network(plain.network, stream, plain)
    return table if np.array_equal(default.cell_of, network.cell_of) else None


def _tables(config: Config) -> dict[str, Any]:
    """The given settings; objects that replace settings are marked again when pilots train."""
    return {name: table for name, table in config.given_tables().items() if name != "given"}


def _without(tables: Mapping[str, Any], name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    return {k: v for k, v in (tables.get(name) or {}).items() if k not in keys}


def _over_the_air(config: Config, tables: dict[str, Any], snr_db: float) -> Config:
    """The settings with an upload over the air at an SNR, and the other settings of the radio."""
    if config.named("uplink") != "aircomp":
        tables["uplink"] = {"name": "aircomp"}
    tables["network"] = {**(tables.get("network") or {}), "snr_db": snr_db}
    return Config.of(tables, loose=given_places(tables) - {("network", "snr_db")})


def submodel_table(tables: Mapping[str, Any]) -> str:
    """The table with the settings of submodels: that of the assigner, if one is chosen."""
    return "assigner" if tables.get("assigner") is not None else "algorithm"
