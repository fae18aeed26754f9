"""Checks of the settings of several tasks."""

from __future__ import annotations

from collections.abc import Mapping

from wirelessfl.config.sections import FOR_TASKS, SECTIONS
from wirelessfl.config.settings import Settings
from wirelessfl.errors import ConfigError
from wirelessfl.tasks.delays import PUBLISHED_STEP_SECONDS


def check_tasks(settings: Settings) -> None:
    """Refuse tasks, and settings of tasks, that the algorithm or uplink does not go with.

    Raises:
        ConfigError: there are such; the message names the settings.
    """
    algorithm, name = settings.choices.algorithm, settings.algorithm["name"]
    timing = algorithm.timing
    if timing.rounds:
        _check_one_model(settings)
        return
    if timing.max_tasks is not None and len(settings.task) > timing.max_tasks:
        raise ConfigError(
            f'algorithm "{name}" trains {timing.max_tasks} task, and there are '
            f'{len(settings.task)}. Choose "fedast" or "fedast-nobuffer".'
        )
    _check_uplink(settings)
    if algorithm.client_state:
        raise ConfigError(
            f'algorithm "{name}" keeps {", ".join(algorithm.client_state)} at its clients, and '
            "requests that wait in a client's queue would find it changed. Choose another one."
        )
    busy, clients = settings.network.busy_clients, settings.network.clients
    if busy is not None and settings.clients_known and busy > clients:
        raise ConfigError(f"busy_clients is {busy}, and there are {clients} clients: lower it.")
    if timing.buffering is not None:
        _check_buffered(settings)
    elif busy is not None:
        raise ConfigError(
            f'busy_clients is {busy}, and algorithm "{name}" has rounds. '
            "Leave it out: availability says who takes part."
        )


def _check_one_model(settings: Settings) -> None:
    """Refuse tasks, and their settings, beside an algorithm that trains one model in rounds.

    Raises:
        ConfigError: there are such.
    """
    name = settings.algorithm["name"]
    if settings.task:
        raise ConfigError(
            f'algorithm "{name}" trains one model, and there are {len(settings.task)} task '
            'tables. Choose "fedast", "sync-st" or another one for tasks, or leave them out.'
        )
    for section, keys in FOR_TASKS.items():
        table, fields = getattr(settings, section), SECTIONS[section].model_fields
        for key in keys:
            if getattr(table, key) != fields[key].default:
                raise ConfigError(
                    f'{key} is {getattr(table, key)}, and algorithm "{name}" has '
                    'synchronous rounds of one model. Leave it out, or choose "fedast".'
                )


def _check_uplink(settings: Settings) -> None:
    """Refuse an uplink that cannot take updates one by one.

    Raises:
        ConfigError: it cannot.
    """
    name, uplink = settings.algorithm["name"], settings.choices.uplink
    if uplink.gives == "sum":
        raise ConfigError(
            f'algorithm "{name}" takes updates one by one, and uplink "{settings.uplink["name"]}" '
            'needs simultaneous senders. Choose uplink "tdma", "ofdma" or "fixed".'
        )
    if settings.network.delays != "shifted-exponential" and not uplink.shareable:
        raise ConfigError(
            f'algorithm "{name}" lets clients upload at any time, and uplink '
            f'"{settings.uplink["name"]}" does not say how they share the band then '
            '(shared_seconds_per_bit). Choose uplink "tdma", "ofdma" or "fixed", or delays '
            '"shifted-exponential".'
        )


def _check_buffered(settings: Settings) -> None:
    """Refuse settings of rounds, and weights where there is no mean.

    Raises:
        ConfigError: there are such.
    """
    name, training = settings.algorithm["name"], settings.training
    if training.clients_per_round is not None:
        raise ConfigError(
            f'clients_per_round is {training.clients_per_round}, and algorithm "{name}" has no '
            "rounds. Leave it out: requests says how many clients work on a task."
        )
    if training.weighting == "samples" and not settings.choices.algorithm.uses_mean:
        raise ConfigError(
            f'weighting is "samples", and algorithm "{name}" does not merge by a mean. Choose '
            'weighting "uniform".'
        )


def check_together(tasks: Mapping[str, Settings]) -> None:
    """Refuse tasks that do not go together with each other, or with the durations.

    Args:
        tasks: by name, what each is trained with.

    Raises:
        ConfigError: there are such; the message names the setting.
    """
    for task in tasks.values():
        if (
            task.network.delays == "shifted-exponential"
            and task.network.step_seconds is None
            and task.data.dataset not in PUBLISHED_STEP_SECONDS
        ):
            raise ConfigError(
                f"data set {task.data.dataset!r} has no published step time. Give step_seconds, "
                "beta of a normal client."
            )
    shares = [task.training.clients_per_round for task in tasks.values()]
    first = next(iter(tasks.values()))
    if first.choices.algorithm.timing.common_rounds is not None and first.clients_known:
        clients = first.network.clients
        available = round(first.network.availability * clients)
        wanted = sum(share or 0 for share in shares)
        if wanted + sum(share is None for share in shares) > available:
            raise ConfigError(
                f"the tasks want {wanted} clients a round (clients_per_round of each), and at "
                f"least one each without it, and {available} of {clients} are available. Lower "
                "them, or raise availability."
            )
