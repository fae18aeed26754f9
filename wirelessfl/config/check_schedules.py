"""Checks of what goes with a schedule: algorithm, uplink, tasks, and settings of rounds."""

from __future__ import annotations

from wirelessfl.algorithms import LOCAL
from wirelessfl.config.check_uplinks import check_shared_uplink
from wirelessfl.config.presets import PRESETS
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.participants import check_participation
from wirelessfl.schedules import Rounds


def check_schedule(settings: Settings) -> None:
    """Refuse algorithms, uplinks, tasks and settings that the schedule does not go with.

    Raises:
        ConfigError: there are such; the message names the settings.
    """
    _check_local(settings)
    match settings.regime:
        case "rounds" | "sessions":
            _check_sessions(settings)
            _check_one_model(settings)
            _check_participation(settings)
        case "cells":
            _check_cells(settings)
        case "tasks":
            _check_rounds_settings(settings)
            _check_tasks(settings)
            check_shared_uplink(settings)
            _check_step_sizes(settings)


def _title(settings: Settings) -> str:
    """The schedule, as messages name it."""
    return f'schedule "{settings.schedule["name"]}"'


def _check_local(settings: Settings) -> None:
    """Refuse, inside cells, methods whose name stands for a schedule.

    Raises:
        ConfigError: there is one.
    """
    local = settings.algorithm.get("local", LOCAL)
    if local in PRESETS:
        raise ConfigError(
            f'local is "{local}", whose name stands for schedule "{PRESETS[local].schedule}", and '
            f'cells of algorithm "{settings.algorithm["name"]}" have edge rounds. Choose one that '
            "has synchronous rounds, such as fedavg."
        )


def _check_sessions(settings: Settings) -> None:
    """Refuse sessions of other rounds than the package's.

    Raises:
        ConfigError: there are such.
    """
    sessions = settings.sessions.sessions
    if sessions is not None and settings.choices.schedule != Rounds():
        raise ConfigError(
            f"sessions is {sessions}, and {_title(settings)} does not say when they begin and end. "
            'Leave it out, or choose schedule "rounds".'
        )


def _check_one_model(settings: Settings) -> None:
    """Refuse several tasks.

    Raises:
        ConfigError: there are such.
    """
    if settings.task:
        raise ConfigError(
            f"{_title(settings)} trains one model of algorithm "
            f'"{settings.algorithm["name"]}", and there are {len(settings.task)} task tables. '
            'Choose schedule "buffered" or "simultaneous", with an algorithm without cells, or '
            "leave them out."
        )


def _check_participation(settings: Settings) -> None:
    """Refuse numbers of participants that cannot be.

    Raises:
        ConfigError: they are such.
    """
    check_participation(
        settings.choices.algorithm,
        settings.network.clients,
        settings.network.cells or 1,
        settings.training.clients_per_round,
        settings.training.tracking_clients,
        known=settings.clients_known,
    )


def _check_cells(settings: Settings) -> None:
    """Refuse what asynchronous cells do not go with.

    Raises:
        ConfigError: there is such; the message names the settings.
    """
    name, schedule = settings.algorithm["name"], settings.choices.schedule
    if schedule.work == "task rounds":
        raise ConfigError(
            f'algorithm "{name}" has cells, and {_title(settings)} has rounds of several tasks of '
            'one server each. Choose schedule "rounds" or "buffered", or an algorithm without '
            "cells."
        )
    _check_one_model(settings)
    _check_rounds_settings(settings)
    if not settings.clients_known:
        return
    _check_everybody(settings, settings.network.clients)
    if schedule.merged is not None:
        settings.choices.algorithm.check_merged_cells(schedule.merged, settings.network.cells or 1)


def _check_rounds_settings(settings: Settings) -> None:
    """Refuse settings of synchronous rounds of one model.

    Raises:
        ConfigError: there are such.
    """
    algorithm, name = settings.choices.algorithm, settings.algorithm["name"]
    title = _title(settings)
    if algorithm.plans_ahead:
        raise ConfigError(
            f'algorithm "{name}" plans its rounds in advance with these settings (budget '
            f"deadline or fastest, min_coverage, masks partition), and {title} has no such "
            'rounds. Choose others, or schedule "rounds".'
        )


def _check_tasks(settings: Settings) -> None:
    """Refuse numbers of clients at work that cannot be.

    Raises:
        ConfigError: they are such.
    """
    busy, clients = settings.network.busy_clients, settings.network.clients
    task_rounds = settings.choices.schedule.work == "task rounds"
    if busy is not None and settings.clients_known and busy > clients:
        raise ConfigError(f"busy_clients is {busy}, and there are {clients} clients: lower it.")
    if task_rounds and busy is not None:
        raise ConfigError(
            f"busy_clients is {busy}, and {_title(settings)} has rounds. "
            "Leave it out: availability says who takes part."
        )
    _check_everybody(settings, 1)


def _check_everybody(settings: Settings, together: int) -> None:
    """Refuse algorithms that need all clients in every round.

    Args:
        settings: of the run.
        together: clients that are sure to train from the same model.

    Raises:
        ConfigError: it is such.
    """
    try:
        settings.choices.algorithm.check(max(settings.network.clients, 2), together, together)
    except ValueError as error:
        raise ConfigError(
            f'algorithm "{settings.algorithm["name"]}" under {_title(settings)}, where not all '
            f'clients need train from the same model: {error} Or choose schedule "rounds".'
        ) from error


def _check_step_sizes(settings: Settings) -> None:
    """Refuse falling step sizes where a merge needs equal ones, or has no end to fall to.

    Raises:
        ConfigError: there are such.
    """
    if settings.choices.lr_schedule.constant:
        return
    name = settings.algorithm["name"]
    if settings.choices.algorithm.merges_by_lr and settings.choices.schedule.work == "requests":
        raise ConfigError(
            f'lr_schedule is "{settings.lr_schedule["name"]}", and algorithm "{name}" divides by '
            f"the clients' step size, which differs within a merge under {_title(settings)}. "
            'Choose lr_schedule "constant", or schedule "rounds".'
        )


def check_end(settings: Settings) -> None:
    """Refuse step sizes that fall within rounds without a limit.

    Raises:
        ConfigError: they do.
    """
    if not settings.choices.lr_schedule.constant:
        raise ConfigError(
            f'lr_schedule is "{settings.lr_schedule["name"]}", and rounds, within which step '
            f"sizes fall, has no limit under {_title(settings)} with max_seconds or target. Give "
            'rounds, or choose lr_schedule "constant".'
        )
