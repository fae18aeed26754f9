"""What a design has predicted for a run, beside what the run takes."""

from __future__ import annotations

from typing import Any

from wirelessfl.runs.engine import Monitor
from wirelessfl.runs.result import RunResult

NAMES = ("rounds", "seconds", "joules", "accuracy")
"""What is predicted, in the order of the setting ``predicted``."""
TITLES = {
    "rounds": "global rounds",
    "seconds": "simulated seconds",
    "joules": "joules per client",
    "accuracy": "validation accuracy",
}


def predictions(run: RunResult) -> dict[str, dict[str, float | None]] | None:
    """Predicted and realised rounds, seconds, joules per client and validation accuracy.

    The realised ones are those at the target, None if it is not reached; without a target, those at
    the end of the run.

    Args:
        run: a run of one model.

    Returns:
        ``predicted`` and ``realised`` by name, see ``NAMES``; None if nothing has been predicted.
    """
    predicted = run.settings.get("predicted")
    if predicted is None or not run.rows or len(run.tasks) > 1:
        return None
    target = run.settings.get("target")
    monitor = Monitor.of(run.settings.get("monitor"), run.rows[-1])
    row: dict[str, Any] | None = run.rows[-1]
    if target is not None:
        row = next((each for each in run.rows if monitor.reached(each, target)), None)
    realised: list[float | None] = [None] * len(NAMES)
    if row is not None:
        realised = [row["round"], row["sim_seconds"], row["joules"], row.get(monitor.field)]
    return {
        name: {"predicted": float(value), "realised": found}
        for name, value, found in zip(NAMES, predicted, realised, strict=True)
    }


def prediction_rows(found: dict[str, dict[str, float | None]]) -> list[list[str]]:
    """The cells of a table: what, predicted, realised, and their difference."""
    rows = []
    for name, pair in found.items():
        predicted, realised = pair["predicted"], pair["realised"]
        assert predicted is not None
        cells = [TITLES[name], f"{predicted:.4g}"]
        if realised is None:
            cells += ["not reached", ""]
        elif name == "accuracy":
            cells += [f"{realised:.4g}", f"{realised - predicted:+.4f}"]
        else:
            cells += [f"{realised:.4g}", f"{100 * (realised / predicted - 1):+.1f} %"]
        rows.append(cells)
    return rows
