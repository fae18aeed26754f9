"""Checks of settings that several tasks share: clients, buffers and the end of the run."""

from __future__ import annotations

from collections.abc import Mapping

from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError
from wirelessfl.tasks.transmissions import check_gathering


def check_tasks(tasks: Mapping[str, Settings]) -> None:
    """Raise if tasks conflict with each other, or with the latency model.

    Args:
        tasks: settings of each task, by name.

    Raises:
        ConfigError: they conflict; the message names the setting.
    """
    for task in tasks.values():
        if task.delays is not None:
            task.delays.check(task.dataset.name, task.network.step_seconds)
    first = next(iter(tasks.values()))
    if not first.clients_known:
        return
    if first.schedule.work == "task rounds":
        _check_shares(tasks, first)
    elif first.uplink.gives == "sum":
        _check_gathering(tasks, first)


def _check_gathering(tasks: Mapping[str, Settings], first: Settings) -> None:
    """Refuse buffers that may never fill if the updates of a merge are sent simultaneously.

    Raises:
        ConfigError: a buffer may never fill.
    """
    schedules = [task.schedule for task in tasks.values()]
    try:
        check_gathering(
            [schedule.merged or 1 for schedule in schedules],
            [schedule.active or 1 for schedule in schedules],
            first.network.clients,
            first.network.busy_clients,
        )
    except ConfigError as error:
        raise ConfigError(
            f'uplink "{first.named("uplink")}" under schedule "{first.named("schedule")}": {error}'
        ) from None


def _check_shares(tasks: Mapping[str, Settings], first: Settings) -> None:
    """Refuse tasks that need more clients per round than are available.

    Raises:
        ConfigError: they need more.
    """
    shares = [task.training.clients_per_round for task in tasks.values()]
    clients = first.network.clients
    available = round(first.network.availability * clients)
    wanted = sum(share or 0 for share in shares)
    if wanted + sum(share is None for share in shares) > available:
        raise ConfigError(
            f"the tasks need {wanted} clients per round (the sum of clients_per_round), plus one "
            f"for each task without it, but {available} of {clients} clients are available. "
            "Lower clients_per_round, or raise availability."
        )


def check_end(settings: Settings) -> None:
    """Refuse decaying step sizes in a run with an unlimited number of rounds.

    Raises:
        ConfigError: step sizes decay.
    """
    if not settings.lr_schedule.constant:
        raise ConfigError(
            f'lr_schedule="{settings.named("lr_schedule")}" decays step sizes over rounds, '
            f'whose number is unlimited under schedule "{settings.named("schedule")}" with '
            'max_seconds or target: give rounds, or choose lr_schedule "constant".'
        )
