"""Resolves settings: fills in defaults that depend on other settings, and refuses conflicts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from channels.decibels import LARGEST_POWER_W
from wirelessfl.config.check_schedules import check_schedule
from wirelessfl.config.check_uplinks import check_payloads
from wirelessfl.config.given import given_values
from wirelessfl.config.kinds import PARTS
from wirelessfl.config.own_network import own_network
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Place, Settings
from wirelessfl.config.table import ChoiceTable
from wirelessfl.config.unused import check_values
from wirelessfl.data.choice import DatasetChoice
from wirelessfl.errors import ConfigError
from wirelessfl.metrics import find_metric
from wirelessfl.radio.layouts import Placed
from wirelessfl.registry import Choice

STAR_CELLS, STAR_EDGE_ROUNDS = 1, 1
MAX_CELLS, EDGE_ROUNDS = 4, 5
"""Default cells and edge rounds of algorithms with cells."""


def filled(settings: Settings, dropped: Collection[Place]) -> Settings:
    """A copy with defaults that depend on other settings filled in.

    ``model_fields_set`` of a section still contains only the settings that the user gave.

    Args:
        settings: the given settings.
        dropped: those without effect, see ``unused``.

    Raises:
        ConfigError: the data set or the tokenizer is unknown.
    """
    values: dict[str, Any] = {name: getattr(settings, name) for name in SECTIONS}
    for section, given in given_values(settings.given).items():
        values[section] = values[section].filled(**given)
    named = settings.network.network
    if named is not None and settings.given.network is None:
        own = own_network(named, settings.run.seed)
        values["network"] = values["network"].filled(cells=own.cells, clients=own.clients)
    network, training = values["network"], values["training"]
    star = settings.algorithm.topology == "star"
    cells = network.cells or (STAR_CELLS if star else min(MAX_CELLS, network.clients))
    values["network"] = network.filled(
        cells=cells,
        coherence=network.coherence or settings.uplink.coherence,
        channel=_absolute(network.channel),
    )
    rounds = training.rounds
    if "rounds" not in training.model_fields_set:
        senders = cells if settings.regime.merges_cells else network.clients
        rounds = settings.schedule.default_rounds(rounds, senders)
    values["training"] = training.filled(
        rounds=rounds,
        edge_rounds=training.edge_rounds or (STAR_EDGE_ROUNDS if star else EDGE_ROUNDS),
    )
    if not settings.task:
        wanted = settings.tables["model"].get("pretrained") or settings.model.default_tokenizer
        settings = replace(settings, dataset=settings.dataset.filled(wanted))
    tables = {kind: _full_table(settings, kind, dropped) for kind in settings.tables}
    return replace(settings, **values, tables=tables)


def _full_table(settings: Settings, kind: str, dropped: Collection[Place]) -> ChoiceTable:
    """The table of a choice with all settings that are not in ``dropped``."""
    choice: Choice = getattr(settings, kind)
    given = settings.tables[kind]
    table = {"name": given["name"], **choice.all_settings()}
    table |= {part: given[part] for part in PARTS if part in given}  # an import path as given
    if isinstance(choice, DatasetChoice):  # of a given data set
        table["name"] = choice.name
    return ChoiceTable(
        {
            key: _absolute(value)
            for key, value in table.items()
            if key == "name" or (kind, key) not in dropped
        }
    )


def _absolute(value: Any) -> Any:
    """``value``, as an absolute path if it is a path, because the working directory may change."""
    return value.expanduser().absolute() if isinstance(value, Path) else value


def check(settings: Settings) -> None:
    """Raise if settings conflict.

    Args:
        settings: settings whose dependent defaults are filled in.

    Raises:
        ConfigError: settings conflict, or a metric is unknown; the message names them.
    """
    check_values(settings)
    _check_presence(settings)
    _check_selection(settings)
    check_payloads(settings)
    _check_cells(settings)
    _check_split(settings)
    check_schedule(settings)
    _check_network(settings)
    for name in settings.evaluation.metric or ():
        find_metric(name)  # raises if there is no such metric


def _check_presence(settings: Settings) -> None:
    """Check the availability model against the numbers of sessions and clients.

    Raises:
        ConfigError: they do not fit.
    """
    presence, sessions = settings.presence, settings.sessions.sessions
    if presence is not None and sessions is not None:
        presence.check(sessions, settings.network.clients if settings.clients_known else None)


def _check_selection(settings: Settings) -> None:
    """Check the settings of the selection against the numbers of participants and cells.

    Raises:
        ConfigError: they do not fit.
    """
    select, per_round = settings.select, settings.training.clients_per_round
    if select is not None and per_round is not None and settings.clients_known:
        select.check(per_round, settings.network.cells or 1)


def _check_cells(settings: Settings) -> None:
    """Check the number of cells.

    Raises:
        ConfigError: there are more cells than clients, several cells but only one server, or the
            algorithm does not work with this number.
    """
    cells, clients = settings.network.cells or 1, settings.network.clients
    if cells > 1 and settings.algorithm.topology == "star":  # only with a given network
        raise ConfigError(
            f'algorithm "{settings.named("algorithm")}" is a star, but the network has {cells} '
            'cells. Choose "hfedavg", or give a network of one cell.'
        )
    assigner = settings.used_assigner
    if assigner.of_cells and settings.algorithm.topology == "star":
        raise ConfigError(
            f'assigner "{assigner.title}" divides the model between cells, and algorithm '
            f'"{settings.named("algorithm")}" is a star: choose algorithm "hfedavg", or an '
            'assigner such as "covered".'
        )
    if cells > clients:
        raise ConfigError(f"cells={cells} exceeds clients={clients}: every cell needs a client.")
    if settings.clients_known:
        assigner.check_cells(cells)
        assigner.check_clients(clients)


def _check_split(settings: Settings) -> None:
    """Check that a given split fits the clients, and that nothing else splits the data.

    Raises:
        ConfigError: it does not, or clients are present by their labels.
    """
    lists, clients = settings.given.split, settings.network.clients
    if lists is None:
        return
    if lists != clients:
        whose = "the network has" if settings.network_replaced else "clients is"
        raise ConfigError(
            f"split=... has samples of {lists} clients, but {whose} {clients}: give one list of "
            "indices per client."
        )


def _check_network(settings: Settings) -> None:
    """Refuse empty ranges, and powers that must be in dBm.

    Raises:
        ConfigError: a range is empty, a CPU speed is not positive, or a power is in dBm.
    """
    network = settings.network
    if network.transmit_power_w > LARGEST_POWER_W:
        raise ConfigError(
            f"transmit_power_w is {network.transmit_power_w:g}: give at most {LARGEST_POWER_W:g} W "
            "(40 dBm). For dBm, give transmit_power_dbm."
        )
    if network.cpu_hz and not 0 < network.cpu_hz[0] <= network.cpu_hz[1]:
        raise ConfigError(f"cpu_hz is {network.cpu_hz}: give 0 < LOW <= HIGH, in Hz.")
    if isinstance(settings.layout, Placed):
        settings.layout.build()  # raises if a setting is missing
    gains = network.path_gain_db
    if gains and gains[0] > gains[1]:
        raise ConfigError(f"path_gain_db is {gains}: give LOW <= HIGH, in dB.")
