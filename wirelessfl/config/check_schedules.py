"""Checks that algorithm, uplink, tasks and settings suit the schedule."""

from __future__ import annotations

from wirelessfl.algorithms import LOCAL
from wirelessfl.config.check_uplinks import check_shared_uplink
from wirelessfl.config.presets import PRESETS
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.participants import check_participation


def check_schedule(settings: Settings) -> None:
    """Raise if algorithm, uplink, tasks or a setting conflict with the schedule.

    Raises:
        ConfigError: they conflict; the message names the settings.
    """
    _check_local(settings)
    match settings.regime:
        case "rounds" | "sessions":
            _check_one_model(settings)
            _check_participation(settings)
        case "cells":
            _check_cells(settings)
        case "tasks" | "task sessions":
            settings.used_assigner.check_requests(_title(settings))
            _check_full_participation(settings, 1)
            check_shared_uplink(settings)


def _title(settings: Settings) -> str:
    """The schedule's name as written in messages."""
    return f'schedule "{settings.named("schedule")}"'


def _check_local(settings: Settings) -> None:
    """Refuse an algorithm inside cells whose name implies an asynchronous or multi-task schedule.

    Raises:
        ConfigError: the algorithm's name implies such a schedule.
    """
    local = settings.tables["algorithm"].get("local", LOCAL)
    if local in PRESETS:
        raise ConfigError(
            f'local is "{local}", which implies schedule "{PRESETS[local].schedule}", but the '
            f'cells of algorithm "{settings.named("algorithm")}" have synchronous edge rounds. '
            "Choose a synchronous algorithm, such as fedavg."
        )


def _check_one_model(settings: Settings) -> None:
    """Refuse tables of tasks.

    Raises:
        ConfigError: the settings have tables of tasks.
    """
    if settings.task:
        raise ConfigError(
            f"{_title(settings)} trains one model of algorithm "
            f'"{settings.named("algorithm")}", but there are {len(settings.task)} task tables. '
            'Choose schedule "buffered" or "simultaneous" with an algorithm without cells, or '
            "leave the tables out."
        )


def _check_participation(settings: Settings) -> None:
    """Check the numbers of participating and tracking clients per round.

    Raises:
        ConfigError: the network or the algorithm does not allow them.
    """
    check_participation(
        settings.algorithm,
        settings.network.clients,
        settings.network.cells or 1,
        settings.training.clients_per_round,
        settings.training.tracking_clients,
        known=settings.clients_known,
    )


def _check_cells(settings: Settings) -> None:
    """Raise if algorithm, tasks or a setting conflict with asynchronous cells.

    Raises:
        ConfigError: they conflict; the message names the settings.
    """
    name, schedule = settings.named("algorithm"), settings.schedule
    if schedule.work == "task rounds":
        raise ConfigError(
            f'algorithm "{name}" has cells, and {_title(settings)} trains several tasks with one '
            'server each. Choose schedule "rounds" or "buffered", or an algorithm without '
            "cells."
        )
    _check_one_model(settings)
    _check_rounds_settings(settings)
    if not settings.clients_known:
        return
    _check_full_participation(settings, settings.network.clients)
    if schedule.merged is not None:
        settings.used_assigner.check_merged_cells(schedule.merged, settings.network.cells or 1)


def _check_rounds_settings(settings: Settings) -> None:
    """Refuse algorithms that plan synchronous rounds of all cells in advance.

    Raises:
        ConfigError: the algorithm plans rounds in advance with these settings.
    """
    name, title = settings.named("algorithm"), _title(settings)
    if settings.used_assigner.plans_ahead:
        raise ConfigError(
            f'algorithm "{name}" plans its rounds in advance with these settings (budget '
            f"deadline or fastest, min_coverage, masks partition), which conflicts with {title}: "
            'choose other values, or schedule "rounds".'
        )


def _check_full_participation(settings: Settings, together: int) -> None:
    """Refuse algorithms that need all clients in every round.

    Args:
        settings: settings of the run.
        together: number of clients guaranteed to train from the same model.

    Raises:
        ConfigError: the algorithm needs more such clients.
    """
    try:
        settings.algorithm.rule.check(max(settings.network.clients, 2), together, together)
    except ValueError as error:
        raise ConfigError(
            f'algorithm "{settings.named("algorithm")}" under {_title(settings)}, where '
            f'clients may train from different models: {error} Or choose schedule "rounds".'
        ) from error


def check_end(settings: Settings) -> None:
    """Refuse decaying step sizes in a run with an unlimited number of rounds.

    Raises:
        ConfigError: step sizes decay.
    """
    if not settings.lr_schedule.constant:
        raise ConfigError(
            f'lr_schedule="{settings.named("lr_schedule")}" decays step sizes over rounds, whose '
            f"number is unlimited under {_title(settings)} with max_seconds or target: give "
            'rounds, or choose lr_schedule "constant".'
        )
