"""Resolves settings: fills in defaults, and refuses conflicts and settings without effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from channels import Network
from wirelessfl.air.radio import Placed
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.algorithms.algorithm import check_participation
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import Asked, Fits, Needs, Suits, needs_of, unmet
from wirelessfl.base.registry import Choice
from wirelessfl.base.wording import shown
from wirelessfl.config.choices import CHOSEN, KINDS, check_local
from wirelessfl.config.kinds import PARTS
from wirelessfl.config.named import GivenNetwork, own_network
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Place, Settings
from wirelessfl.config.typed_tables import ChoiceTable
from wirelessfl.data.choice import DatasetChoice
from wirelessfl.models.metrics import find_metric
from wirelessfl.training.batches import Augmentation


def unused(settings: Settings) -> dict[Place, str]:
    """The reason for each setting without effect, given or not, by table and key.

    The first of these counts: a need of the whole table, a need of the field, what the choice says.
    """
    parts, run = _parts(settings), settings.frame
    whole = unmet([*_of_kinds(settings, Needs)], run)
    idle = {(name, key): why for (name, _), why in whole.items() for key in settings.tables[name]}
    idle = unmet([*_of_fields(parts, Needs)], run) | idle
    reasons = [(name, part.unused()) for name, part in parts if isinstance(part, Choice)]
    idle = {(name, key): why for name, whys in reasons for key, why in whys.items()} | idle
    order = {name: place for place, name in enumerate((*SECTIONS, *CHOSEN))}
    return dict(sorted(idle.items(), key=lambda entry: order[entry[0][0]]))


def _parts(settings: Settings) -> list[tuple[str, Any]]:
    """The objects whose fields are the settings of sections and choices, with their tables."""
    sections = [(name, getattr(settings, name)) for name in SECTIONS]
    choices = [(name, getattr(settings, name)) for name in CHOSEN]
    owners = [(name, choice.setting_owners) for name, choice in choices if choice is not None]
    return [*sections, *((name, part) for name, parts in owners for part in parts)]


def _of_kinds(settings: Settings, condition: type[Needs]) -> Iterator[Asked]:
    """The conditions of whole tables of choices: ``Needs``, ``Fits`` or ``Suits``."""
    for name in KINDS:
        if name in settings.tables:
            kind, table = KINDS[name], settings.tables[name]
            needs = (*kind.needs, *kind.table) if condition is Needs else kind.table
            yield (name, "name"), tuple(n for n in needs if type(n) is condition), table


def _of_fields(parts: Iterable[tuple[str, Any]], condition: type[Needs]) -> Iterator[Asked]:
    """The conditions of the fields of sections and choices: ``Needs``, ``Fits`` or ``Suits``."""
    requirement: Any = condition
    for name, part in parts:
        cls: Any = type(part)
        for key, needs in needs_of(cls, requirement).items():
            yield (name, key), needs, part


def check_values(settings: Settings) -> None:
    """Raise if a value does not fit the run, or values do not suit each other.

    Raises:
        ConfigError: they do not; the message names the settings that conflict.
    """
    parts, run = _parts(settings), settings.frame
    for place, why in unmet([*_of_kinds(settings, Fits), *_of_fields(parts, Fits)], run).items():
        raise ConfigError(f"{_stated(settings, place)} {why}.")
    for why in unmet([*_of_kinds(settings, Suits), *_of_fields(parts, Suits)], run).values():
        raise ConfigError(f"{why}.")


def refusal(settings: Settings, place: Place, reason: str) -> str:
    """The error message for a setting without effect."""
    stated, leave = _stated(settings, place), ", or leave" if ": " in reason else ": leave"
    return f"{stated} {reason}{leave} {stated.partition('=')[0]} out."


def _stated(settings: Settings, place: Place) -> str:
    """A setting with its value, as in messages."""
    section, key = place
    value = settings.table(section)[key]
    return f"{section if key == 'name' and section in KINDS else key}={shown(value)}"


STAR_CELLS, STAR_EDGE_ROUNDS = 1, 1
MAX_CELLS, EDGE_ROUNDS = 4, 5
"""Default cells and edge rounds of algorithms with cells."""


def filled(settings: Settings, dropped: Collection[Place]) -> Settings:
    """A copy with defaults that depend on other settings filled in; they do not count as given.

    Args:
        settings: the given settings.
        dropped: those without effect, see ``unused``.

    Raises:
        ConfigError: the data set or the tokenizer is unknown.
    """
    network, training = settings.network, settings.training
    source: Network | GivenNetwork | None = settings.given.network
    if source is None and network.network is not None:
        source = own_network(network.network, settings.run.seed)
    if source is not None:
        network = replace(network, cells=source.cells, clients=source.clients)
    star = not settings.hierarchical
    cells = network.cells or (STAR_CELLS if star else min(MAX_CELLS, network.clients))
    network = replace(
        network,
        cells=cells,
        coherence=network.coherence or settings.uplink.coherence,
        channel=_absolute(network.channel),
    )
    rounds = training.rounds
    if ("training", "rounds") not in settings.places:
        senders = cells if settings.regime.merges_cells else network.clients
        rounds = settings.schedule.default_rounds(rounds, senders)
    training = replace(
        training,
        rounds=rounds,
        edge_rounds=training.edge_rounds or (STAR_EDGE_ROUNDS if star else EDGE_ROUNDS),
        availability_trace=_absolute(training.availability_trace),
    )
    if not settings.task:
        tokenizer = settings.tables["model"].get("pretrained") or settings.model.default_tokenizer
        settings = replace(settings, dataset=settings.dataset.filled(tokenizer))
    uplink = settings.uplink
    stated = ("uplink", "csi_error") in settings.places
    if network.pilot_symbols and isinstance(uplink, AirComp) and not stated:
        settings = replace(settings, uplink=replace(uplink, csi_error=None))
    tables = {kind: _full_table(settings, kind, dropped) for kind in settings.tables}
    return replace(settings, network=network, training=training, tables=tables)


def _full_table(settings: Settings, kind: str, dropped: Collection[Place]) -> ChoiceTable:
    """The table of a choice with all settings that are not in ``dropped``."""
    choice: Choice = getattr(settings, kind)
    stated = settings.tables[kind]
    table = {"name": stated["name"], **choice.all_settings()}
    table |= {part: stated[part] for part in PARTS if part in stated}  # an import path as given
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
    presence, sessions = settings.presence, settings.sessions.sessions
    if presence is not None and sessions is not None:
        presence.check(sessions, settings.network.clients if settings.clients_known else None)


def _check_selection(settings: Settings) -> None:
    select, per_round = settings.select, settings.training.clients_per_round
    if select is not None and per_round is not None and settings.clients_known:
        select.check(per_round, settings.network.cells or 1)


def _check_cells(settings: Settings) -> None:
    cells, clients = settings.network.cells or 1, settings.network.clients
    if cells > 1 and not settings.hierarchical:  # only with a given network
        raise ConfigError(
            f'algorithm "{settings.named("algorithm")}" has one server, but the network has '
            f'{cells} cells. Choose "hfedavg" or "hist", or give a network of one cell.'
        )
    assigner = settings.used_assigner
    if assigner.of_cells and not settings.hierarchical:
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
    """Check that a given split fits the clients, and that nothing else splits the data."""
    lists, clients = settings.given.split, settings.network.clients
    if lists is None:
        return
    if lists != clients:
        replaced = settings.given.network or settings.network.network
        whose = "the network has" if replaced else "clients is"
        raise ConfigError(
            f"split=... has samples of {lists} clients, but {whose} {clients}: give one list of "
            "indices per client."
        )


def _check_participation(settings: Settings) -> None:
    """Check the numbers of clients that train from the same model, and merged cells."""
    clients, cells = settings.network.clients, settings.network.cells or 1
    if settings.schedule.work == "rounds":
        check_participation(
            settings.rule,
            settings.frame.title,
            clients,
            cells,
            settings.training.clients_per_round,
            settings.training.tracking_clients,
            resolved=settings.clients_known,
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
        settings.rule.check(max(settings.network.clients, 2), clients, clients)
    except ValueError as error:
        raise ConfigError(
            f'algorithm "{settings.named("algorithm")}" under schedule '
            f'"{settings.named("schedule")}", where clients may train from different models: '
            f'{error} Or choose schedule "rounds".'
        ) from error
