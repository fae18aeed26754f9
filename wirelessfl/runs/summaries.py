"""Summaries of runs: the last row, the cost of the target, changes of clients, predictions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from wirelessfl.air.links import EQUAL_SHARES
from wirelessfl.base.rows import as_mean_value, has_diverged
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.targets import Monitor, ToTarget, cost_to

Fields = Mapping[str, Any]
FIELDS = ("session", "session_round", "accuracy")


@dataclass(frozen=True)
class Transition:
    """Transition from one session to the next.

    Args:
        session: the later session, from 1.
        before: final accuracy of the earlier session on its labels, in [0, 1]. A diverged model
            has no accuracy: this and the next two are nan if one of their models has diverged.
        mean_accuracy: mean accuracy over the first evaluated rounds of the later session.
        drop: ``before`` minus the lowest accuracy of the initial model and the first rounds;
            negative if all of these accuracies are higher.
        rounds_to_recover: rounds until the accuracy is at least ``before`` minus the tolerance; 0
            if the initial model reaches this accuracy, None if no evaluated round does, or the
            earlier session has diverged. Diverged models do not.
    """

    session: int
    before: float
    mean_accuracy: float
    drop: float
    rounds_to_recover: int | None


def transitions(
    rows: Sequence[Fields], first: int = 10, tolerance: float = 0.01
) -> list[Transition]:
    """Compute one transition per session after the first.

    Args:
        rows: all rows of a run in sessions, in order.
        first: number of rounds at the start of a session to evaluate; rounds without a row are
            skipped.
        tolerance: deficit to ``before`` at which the accuracy counts as recovered, in [0, 1].

    Returns:
        Transitions in the order of the sessions; a last session without evaluated rounds is left
        out.

    Raises:
        ValueError: the run has no sessions, sessions are missing, the first rounds of a session
            were not evaluated, or ``first`` < 1.
    """
    if first < 1:
        raise ValueError(f"first is {first}: give a number of rounds >= 1.")
    changes = []
    for earlier, later in pairwise(_by_session(rows)):
        session, before = later[0]["session"], as_mean_value(earlier[-1])
        start = [row for row in later if row["session_round"] <= first]
        trained = [as_mean_value(row) for row in start if row["session_round"] >= 1]
        if not trained:
            if later[-1]["session_round"] <= first:  # the run ended at the session's start
                continue
            raise ValueError(
                f"session {session} has no row for rounds 1 to {first}: evaluate them with "
                "--eval-first."
            )
        enough = (
            row["session_round"]
            for row in later
            if not has_diverged(row) and row["accuracy"] >= before - tolerance
        )
        changes.append(
            Transition(
                session,
                before,
                statistics.mean(trained),
                before - float(np.min([as_mean_value(row) for row in start])),
                next(enough, None),
            )
        )
    return changes


def _by_session(rows: Sequence[Fields]) -> list[list[Fields]]:
    """The rows of each session, the first one of each round."""
    sessions: list[list[Fields]] = []
    if any("session" in row and "accuracy" not in row for row in rows):
        raise ValueError(
            "rows have no accuracy, as in regression: transitions compare accuracies. Plot the "
            "loss instead, or give rows of a run with classes."
        )
    for number, row in enumerate(rows):
        for name in FIELDS:
            if row.get(name) is None:
                raise ValueError(
                    f"row {number} has no {name!r}: give evaluated rows of a run with --sessions."
                )
        if not sessions or row["session"] != sessions[-1][0]["session"]:
            if row["session"] != len(sessions):
                raise ValueError(
                    f"row {number} belongs to session {row['session']}, but session "
                    f"{len(sessions)} was expected: give all rows of a run in order."
                )
            sessions.append([])
        # The time limit adds a row if it ends a session after an evaluated round.
        if not sessions[-1] or row["session_round"] != sessions[-1][-1]["session_round"]:
            sessions[-1].append(row)
    return sessions


TO_TARGET = {
    "rounds_to_target": "round",
    "mib_to_target": "uplink_mib",
    "seconds_to_target": "sim_seconds",
}
"""Fields of a summary about the target; values are read from these fields of a row."""
MEASURED = ("accuracy", "loss", "validation_accuracy", "validation_loss")
"""Fields of rows that a summary has, if the rows have them."""
TOTALS = ("uplink_mib", "sim_seconds", "joules", "wall_seconds")
"""Totals since the start, of the last row."""


def summary_of(rows: list[Row], settings: Mapping[str, Any], ended: str | None) -> dict[str, Any]:
    """The summary of one model, see ``RunResult.summary``.

    Args:
        rows: its rows, at least one.
        settings: its settings with an effect, by flag name.
        ended: why the run ended early; None if it did not.
    """
    last, target = rows[-1], settings.get("target")
    monitor = Monitor.of(settings.get("monitor"), last)
    best, field = max(rows, key=monitor.score), "accuracy" if "accuracy" in last else "loss"
    summary: dict[str, Any] = {
        "algorithm": settings["algorithm"],
        "schedule": settings["schedule"],
        "dataset": settings["dataset"],
        "uplink": settings["uplink"],
        "round": last["round"],
        **{key: _value(last, key) for key in MEASURED if key in last},
        f"best_{field}": _value(best, field),
        **{key: last[key] for key in TOTALS},
        **{key: last[key] for key in EQUAL_SHARES if key in last},
    }
    if ended is not None:
        summary["ended"] = ended
    if settings.get("sessions") is not None:
        summary["transition_accuracy"] = _after_transitions(rows)
    if target is not None:
        costs = cost_to(rows, target, monitor=monitor)
        summary["target"] = target
        if settings.get("monitor") is not None:
            summary["monitor"] = monitor.field
        for name, key in TO_TARGET.items():
            summary[name] = costs.row[key] if costs.reached else None
    return summary


def summary_of_tasks(
    rows_of_tasks: Sequence[Mapping[str, Any]],
    last: Row,
    settings: Mapping[str, Any],
    ended: str | None,
) -> dict[str, Any]:
    """The summary of a run of several tasks, see ``RunResult.summary``.

    Args:
        rows_of_tasks: summaries of the tasks.
        last: last row of the run.
        settings: settings of the run, by flag name.
        ended: why the run ended early; None if it did not.
    """
    summary = {
        "algorithm": settings["algorithm"],
        "schedule": settings["schedule"],
        "dataset": "+".join(dict.fromkeys(summary["dataset"] for summary in rows_of_tasks)),
        "uplink": settings["uplink"],
        "round": max(summary["round"] for summary in rows_of_tasks),
        **{
            key: _mean([summary[key] for summary in rows_of_tasks])
            for key in (*MEASURED, "best_accuracy", "best_loss")
            if all(key in summary for summary in rows_of_tasks)
        },
        **{key: last[key] for key in TOTALS},
    }
    if ended is not None:
        summary["ended"] = ended
    targets = {summary.get("target") for summary in rows_of_tasks}
    if None not in targets:
        summary["target"] = targets.pop() if len(targets) == 1 else "of each task"
        for name in TO_TARGET:
            values = [summary[name] for summary in rows_of_tasks]
            summary[name] = None if None in values else max(values)
    return summary


def _after_transitions(rows: list[Row]) -> float | None:
    """Mean accuracy in the first 10 rounds of all sessions but the first; None if unknown.

    Also if one of their models has diverged.
    """
    try:
        changes = transitions(rows, first=10, tolerance=0.01)
    except ValueError:
        return None
    means = [None if math.isnan(one.mean_accuracy) else one.mean_accuracy for one in changes]
    return _mean(means) if changes else None


def _value(row: Row, key: str) -> float | None:
    """A field of an evaluation; None if the model has diverged."""
    return None if has_diverged(row) else row[key]


def _mean(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else None


NAMES = ("rounds", "seconds", "joules", "accuracy")
"""What is predicted, in the order of the setting ``predicted``."""
TITLES = {
    "rounds": "global rounds",
    "seconds": "simulated seconds",
    "joules": "joules per client",
    "accuracy": "validation accuracy",
}


def predictions(
    settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, float | None]] | None:
    """Predicted and realised rounds, seconds, joules per client and validation accuracy.

    The realised ones are those at the target, None if it is not reached; without a target, those at
    the end of the run.

    Args:
        settings: settings of the run by the names of their flags.
        rows: its rows.

    Returns:
        ``predicted`` and ``realised`` by name, see ``NAMES``, and ``low`` and ``high`` where the
        prediction has an interval; None if nothing has been predicted.
    """
    predicted = settings.get("predicted")
    if predicted is None or len({row.get("task") for row in rows}) != 1:
        return None
    target = settings.get("target")
    monitor = Monitor.of(settings.get("monitor"), rows[-1])
    costs = ToTarget(rows, len(rows) - 1)
    if target is not None:
        costs = cost_to(rows, target, monitor=monitor)
    realised: list[float | None] = [None] * len(NAMES)
    if costs.reached:
        row = costs.row
        realised = [row["round"], row["sim_seconds"], row["joules"], row.get(monitor.field)]
    values, ends = predicted[: len(NAMES)], predicted[len(NAMES) :]
    pairs: dict[str, dict[str, float | None]] = {
        name: {"predicted": float(value), "realised": value_at_target}
        for name, value, value_at_target in zip(NAMES, values, realised, strict=True)
    }
    for name, low, high in zip(NAMES, ends[::2], ends[1::2], strict=False):
        pairs[name] |= {"low": float(low), "high": float(high)}
    return pairs


PREDICTION_HEAD = ("", "predicted", "90 % interval", "realised", "difference")
"""Headings of ``prediction_rows``."""


def prediction_rows(pairs: dict[str, dict[str, float | None]]) -> list[list[str]]:
    """The cells of a table: what, predicted and its interval, realised, and the difference."""
    rows = []
    for name, pair in pairs.items():
        predicted, realised = pair["predicted"], pair["realised"]
        assert predicted is not None
        low, high = pair.get("low"), pair.get("high")
        has_interval = low is not None and high is not None and low < high
        cells = [
            TITLES[name],
            f"{predicted:.4g}",
            f"{low:.4g} to {high:.4g}" if has_interval else "",
        ]
        if realised is None:
            cells += ["not reached", ""]
        elif name == "accuracy":
            cells += [f"{realised:.4g}", f"{realised - predicted:+.4f}"]
        else:
            cells += [f"{realised:.4g}", f"{100 * (realised / predicted - 1):+.1f} %"]
        rows.append(cells)
    return rows
