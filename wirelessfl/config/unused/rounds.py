"""Rounds: settings without effect on selection, local steps, cut-off, and the end of a run."""

from __future__ import annotations

from wirelessfl.config.settings import Settings
from wirelessfl.config.unused.place import NO_ROUNDS, Found
from wirelessfl.selection import RandomSelection


def selection_settings(settings: Settings) -> Found:
    """A selection where all clients take part or channels are missing, and its energy budget."""
    select, per_round = settings.choices.select, settings.training.clients_per_round
    if select is None:
        title = f'schedule "{settings.schedule["name"]}"'
        yield (
            ("training", "client_joules"),
            f"conflicts with {title}, {NO_ROUNDS}",
        )
        return
    name = (settings.select or {})["name"]
    reason = None
    if per_round is None and name != RandomSelection.name:
        reason = "needs clients_per_round: set it"
    elif select.radio and not settings.frame.uplink.radio:
        uplink = f'uplink "{settings.frame.uplink.title}"'
        reason = f'conflicts with {uplink}, which has no radio channel: choose uplink "tdma"'
    if reason is not None:
        yield from ((("select", key), reason) for key in settings.select or {})


def step_settings(settings: Settings) -> Found:
    """A number of local steps that a number of passes replaces."""
    passes = settings.training.local_epochs
    if passes is None:
        return
    yield (
        ("training", "local_steps"),
        f"conflicts with local_epochs={passes:g}, which gives each client its own number of steps: "
        "choose one of them",
    )


def cutoff_settings(settings: Settings) -> Found:
    """A cut-off where no update can miss it."""
    place, uplink = ("training", "cutoff_seconds"), settings.choices.uplink
    if settings.regime == "tasks":
        title = f'schedule "{settings.schedule["name"]}"'
        yield place, f"conflicts with {title}, {NO_ROUNDS}"
    elif uplink.gives == "sum":
        yield (
            place,
            f'conflicts with uplink "{settings.frame.uplink.title}", over which the clients of a '
            'cell send at the same time: choose uplink "tdma", "ofdma" or "fixed"',
        )
    elif uplink.deadline_seconds is not None:
        failures = settings.choices.failures
        if failures is None or failures.never or not failures.repeats:
            yield (
                place,
                f"conflicts with round_deadline={uplink.deadline_seconds:g}, which all updates "
                "meet: choose one of them",
            )


def target_settings(settings: Settings) -> Found:
    """``stop_at_target`` without a target, or where accuracies do not end the run."""
    place = ("evaluation", "stop_at_target")
    if settings.regime == "tasks":
        title = f'schedule "{settings.schedule["name"]}"'
        yield place, f"conflicts with {title}, under which a task always ends at its target"
    elif settings.sessions.sessions is not None:
        yield place, "conflicts with sessions, which test other labels in each session"
    elif settings.evaluation.target is None:
        yield place, "needs target: set target"


def patience_settings(settings: Settings) -> Found:
    """``patience`` where accuracies do not end the run, and ``min_delta`` without it."""
    if settings.sessions.sessions is not None:
        reason = "conflicts with sessions, which test other labels in each session"
        yield ("evaluation", "patience"), reason
        yield ("evaluation", "min_delta"), reason
    elif settings.evaluation.patience is None:
        yield ("evaluation", "min_delta"), "needs patience: set patience"
