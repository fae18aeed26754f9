"""Summaries of runs: the last row, the best accuracy, and the cost of reaching the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirelessfl.divergence import has_diverged
from wirelessfl.rounds.equal_shares import EQUAL_SHARES
from wirelessfl.runs.directory import Row
from wirelessfl.runs.monitor import Monitor
from wirelessfl.runs.transitions import transitions

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
        hit = next((row for row in rows if monitor.reached(row, target)), None)
        summary["target"] = target
        if settings.get("monitor") is not None:
            summary["monitor"] = monitor.field
        for name, key in TO_TARGET.items():
            summary[name] = None if hit is None else hit[key]
    return summary


def summary_of_tasks(
    each: Sequence[Mapping[str, Any]], last: Row, settings: Mapping[str, Any], ended: str | None
) -> dict[str, Any]:
    """The summary of a run of several tasks, see ``RunResult.summary``.

    Args:
        each: summaries of the tasks.
        last: last row of the run.
        settings: settings of the run, by flag name.
        ended: why the run ended early; None if it did not.
    """
    summary = {
        "algorithm": settings["algorithm"],
        "schedule": settings["schedule"],
        "dataset": "+".join(dict.fromkeys(summary["dataset"] for summary in each)),
        "uplink": settings["uplink"],
        "round": max(summary["round"] for summary in each),
        **{
            key: _mean([summary[key] for summary in each])
            for key in (*MEASURED, "best_accuracy", "best_loss")
            if all(key in summary for summary in each)
        },
        **{key: last[key] for key in TOTALS},
    }
    if ended is not None:
        summary["ended"] = ended
    targets = {summary.get("target") for summary in each}
    if None not in targets:
        summary["target"] = targets.pop() if len(targets) == 1 else "of each task"
        for name in TO_TARGET:
            values = [summary[name] for summary in each]
            summary[name] = None if None in values else max(values)
    return summary


def _after_transitions(rows: list[Row]) -> float | None:
    """Mean accuracy in the first 10 rounds of all sessions but the first; None if unknown."""
    try:
        found = transitions(rows, first=10, tolerance=0.01)
    except ValueError:
        return None
    return _mean([one.mean_accuracy for one in found]) if found else None


def _value(row: Row, key: str) -> float | None:
    """A field of an evaluation; None if the model has diverged."""
    return None if has_diverged(row) else row[key]


def _mean(values: list[float | None]) -> float | None:
    """Mean of ``values``; None if any of them is None."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
