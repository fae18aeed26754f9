"""Schedules: settings without effect on rounds, requests, tasks and sessions."""

from __future__ import annotations

from wirelessfl.config.kinds import with_cells
from wirelessfl.config.settings import Settings
from wirelessfl.config.unused.place import NO_ROUNDS, Found


def schedule_settings(settings: Settings) -> Found:
    """Settings without effect under the schedule."""
    algorithm, uplink = settings.choices.algorithm, settings.choices.uplink
    schedule, title = settings.choices.schedule, f'schedule "{settings.schedule["name"]}"'
    if schedule.work != "requests":
        for key in algorithm.of_staleness:
            yield (
                ("algorithm", key),
                f"conflicts with {title}, under which no update is stale: choose schedule "
                '"buffered"',
            )
    if settings.regime == "tasks":
        yield ("run", "client_log"), f"conflicts with {title}, {NO_ROUNDS}"
        for key in uplink.of_rounds:
            yield (
                ("uplink", key),
                f"conflicts with {title}, {NO_ROUNDS}",
            )
    if settings.regime == "cells":
        for key in schedule.of_clients:
            yield (
                ("schedule", key),
                f'conflicts with algorithm "{settings.algorithm["name"]}", whose cells '
                f"replace requests to clients under {title}: choose an algorithm without cells",
            )
    if schedule.work != "rounds":
        reason = f'conflicts with {title}, which has no sessions: choose schedule "rounds"'
        yield ("sessions", "sessions"), reason
        yield (
            ("training", "tracking_clients"),
            f"conflicts with {title}, under which every client that trains sends tracking terms: "
            'choose schedule "rounds"',
        )
    if schedule.work == "requests":
        clients = "in which all clients of a cell train: choose"
        if settings.regime == "tasks":
            clients = "which does not sample clients: set requests, or choose"
        yield (
            ("training", "clients_per_round"),
            f'conflicts with {title}, {clients} schedule "rounds"',
        )
    if settings.regime == "tasks" and len(settings.task) < 2:
        for key in schedule.of_several:
            yield ("schedule", key), "needs several tasks: add tables of tasks"


def request_settings(settings: Settings) -> Found:
    """Settings of requests to clients and of rounds of tasks, if the run has none."""
    if settings.choices.algorithm.topology != "star":
        for key in ("drop_out", "availability", "busy_clients"):
            yield ("network", key), with_cells(settings.algorithm["name"])
    title, work = f'schedule "{settings.schedule["name"]}"', settings.choices.schedule.work
    tasks = settings.regime == "tasks"
    if not tasks:
        yield (
            ("network", "drop_out"),
            f"conflicts with {title}, which has no requests to clients: choose schedule "
            '"buffered" or "simultaneous"',
        )
    if not (tasks and work == "task rounds"):
        yield (
            ("network", "availability"),
            f'conflicts with {title}, which has no rounds of tasks: choose schedule "simultaneous"',
        )
    if not (tasks and work == "requests"):
        yield (
            ("network", "busy_clients"),
            f'conflicts with {title}, which has no requests to clients: choose schedule "buffered"',
        )
    if settings.choices.schedule.work == "rounds":
        yield (
            ("evaluation", "eval_seconds"),
            f"conflicts with {title}, which evaluates after whole rounds: choose eval_every or "
            'schedule "buffered"',
        )


def session_settings(settings: Settings) -> Found:
    """Settings of sessions, if the run has none."""
    if settings.sessions.sessions is None:
        yield ("sessions", "tested_labels"), "needs sessions: set sessions"
        yield ("evaluation", "eval_first"), "needs sessions: set sessions"
    elif (settings.evaluation.eval_every or 1) == 1:
        yield (
            ("evaluation", "eval_first"),
            "conflicts with eval_every=1, which evaluates every round: raise eval_every",
        )
