"""Settings resolved: defaults that depend on others are filled in, conflicts are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wirelessfl.config.check_schedules import check_schedule
from wirelessfl.config.check_sessions import check_pilot, check_sessions
from wirelessfl.config.check_uplinks import check_payloads
from wirelessfl.config.given import given_values
from wirelessfl.config.sections import DataSection
from wirelessfl.config.settings import Settings
from wirelessfl.config.unused import unused
from wirelessfl.data import text_options
from wirelessfl.data.pretrained import HUB_MODEL
from wirelessfl.errors import ConfigError

STAR_CELLS, STAR_EDGE_ROUNDS = 1, 1
MAX_CELLS, EDGE_ROUNDS = 4, 5
"""Cells and edge rounds of algorithms over cells, unless the settings say."""


def filled(settings: Settings) -> dict[str, Any]:
    """Values of all tables, with every default filled in that depends on others, by table.

    The settings that the user gave stay the ``model_fields_set`` of their section.

    Raises:
        ConfigError: the data set is unknown.
    """
    values: dict[str, Any] = dict(settings)
    for section, given in given_values(settings.given).items():
        values[section] = values[section].filled(**given)
    choices, network, training = settings.choices, values["network"], values["training"]
    star = choices.algorithm.topology == "star"
    dropped = unused(settings)
    for kind, choice in vars(choices).items():
        if choice is not None:
            table = {"name": values[kind]["name"], **vars(choice)}
            values[kind] = {
                key: value
                for key, value in table.items()
                if key == "name" or (kind, key) not in dropped
            }
    if values["presence"] and values["presence"].get("trace"):
        # The working directory may change.
        values["presence"]["trace"] = Path(values["presence"]["trace"]).absolute()
    cells = network.cells or (STAR_CELLS if star else min(MAX_CELLS, network.clients))
    values["network"] = network.filled(
        cells=cells, coherence=network.coherence or choices.uplink.coherence
    )
    rounds = training.rounds
    if "rounds" not in training.model_fields_set:
        senders = cells if settings.regime == "cells" else network.clients
        rounds = choices.schedule.default_rounds(rounds, senders)
    values["training"] = training.filled(
        rounds=rounds,
        edge_rounds=training.edge_rounds or (STAR_EDGE_ROUNDS if star else EDGE_ROUNDS),
    )
    if settings.given.data is None and not settings.task:
        values["data"] = _with_text_options(settings.data, settings.model.get("pretrained"))
    return values


def _with_text_options(data: DataSection, pretrained: str | None) -> DataSection:
    """With tokenizer and length where the data set takes them.

    The stored settings then say what was read, even if the defaults change later.
    """
    options = text_options(data.dataset)
    if "tokenizer" in options:
        options["tokenizer"] = pretrained or options["tokenizer"] or HUB_MODEL
    return data.filled(
        **{
            option: default
            for option, default in options.items()
            if getattr(data, option) is None and default is not None
        }
    )


def check(settings: Settings) -> None:
    """Refuse settings that do not go together.

    Args:
        settings: with what depends on others filled in.

    Raises:
        ConfigError: there are such; the message names the settings.
    """
    check_sessions(settings)
    if settings.warm_start is not None:
        check_pilot(settings.sessions.sessions, settings.warm_start)
    check_payloads(settings)
    _check_cells(settings)
    check_schedule(settings)
    _check_network(settings)


def _check_cells(settings: Settings) -> None:
    """Refuse cells without a client, and cells of a star.

    Raises:
        ConfigError: there are such.
    """
    cells, clients = settings.network.cells or 1, settings.network.clients
    if cells > 1 and settings.choices.algorithm.topology == "star":  # of a given network
        raise ConfigError(
            f'algorithm "{settings.algorithm["name"]}" is a star, and the network has {cells} '
            'cells. Choose "hfedavg", or give a network of one cell.'
        )
    if cells > clients:
        raise ConfigError(f"cells is {cells} and clients {clients}: every cell needs a client.")


def _check_network(settings: Settings) -> None:
    """Refuse empty ranges.

    Raises:
        ConfigError: there are such.
    """
    network = settings.network
    if network.cpu_hz and not 0 < network.cpu_hz[0] <= network.cpu_hz[1]:
        raise ConfigError(f"cpu_hz is {network.cpu_hz}: give 0 < LOW <= HIGH, in Hz.")
    gains = network.path_gain_db
    if gains and gains[0] > gains[1]:
        raise ConfigError(f"path_gain_db is {gains}: give LOW <= HIGH, in dB.")
