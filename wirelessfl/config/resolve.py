"""Resolves settings: fills in defaults that depend on other settings, and refuses conflicts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from wirelessfl.algorithms.algorithm import check_participation
from wirelessfl.config.given import given_values
from wirelessfl.config.kinds import PARTS
from wirelessfl.config.own_network import own_network
from wirelessfl.config.presets import check_local
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Place, Settings
from wirelessfl.config.table import ChoiceTable
from wirelessfl.config.unused import check_values
from wirelessfl.data.choice import DatasetChoice
from wirelessfl.errors import ConfigError
from wirelessfl.metrics import find_metric
from wirelessfl.radio import Placed
from wirelessfl.registry import Choice
from wirelessfl.training.augmentation import Augmentation

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
    return value.absolute() if isinstance(value, Path) else value


def check(settings: Settings) -> None:
    """Raise if settings conflict.

    Args:
        settings: settings whose dependent defaults are filled in.

    Raises:
        ConfigError: settings conflict, or a metric or function is unknown; the message names them.
    """
    check_values(settings)
    check_local(settings.tables["algorithm"])
    _check_presence(settings)
    _check_selection(settings)
    _check_cells(settings)
    _check_split(settings)
    _check_participation(settings)
    if isinstance(settings.layout, Placed):
        settings.layout.build()  # raises if a setting is missing
    for name in settings.evaluation.metric or ():
        find_metric(name)  # raises if there is no such metric
    if settings.data.augment is not None:
        Augmentation.find(settings.data.augment)  # raises if there is no such function


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


def _check_participation(settings: Settings) -> None:
    """Check the numbers of clients that train from the same model, and merged cells.

    Raises:
        ConfigError: the network or the algorithm does not allow them.
    """
    clients, cells = settings.network.clients, settings.network.cells or 1
    if settings.schedule.work == "rounds":
        check_participation(
            settings.algorithm,
            clients,
            cells,
            settings.training.clients_per_round,
            settings.training.tracking_clients,
            known=settings.clients_known,
        )
    elif settings.regime.of_tasks:
        settings.used_assigner.check_requests(f'schedule "{settings.named("schedule")}"')
        _check_equal_models(settings, 1)
    elif settings.clients_known:
        _check_equal_models(settings, clients)
        if settings.schedule.merged is not None:
            settings.used_assigner.check_merged_cells(settings.schedule.merged, cells)


def _check_equal_models(settings: Settings, clients: int) -> None:
    """Refuse algorithms that need more than ``clients`` with the same model in every round."""
    try:
        settings.algorithm.rule.check(max(settings.network.clients, 2), clients, clients)
    except ValueError as error:
        raise ConfigError(
            f'algorithm "{settings.named("algorithm")}" under schedule '
            f'"{settings.named("schedule")}", where clients may train from different models: '
            f'{error} Or choose schedule "rounds".'
        ) from error
