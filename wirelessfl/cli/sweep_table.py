"""Tables of a sweep: one row per run, sorted by what counts; and means over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich.table import Table

from wirelessfl.base.import_paths import short
from wirelessfl.base.terminal import Terminal
from wirelessfl.cli.output import TO_TARGET, TOTALS, cells_of, in_form, with_validation

HEADINGS = {
    "uplink_mib": "MiB per client",
    "mib_to_target": "MiB per client",
    "joules": "J per client",
}
"""Headings that break into short lines, by key of a summary."""
LAST = ("wall_seconds", "joules", "uplink_mib", "mib_to_target", "accuracy")
"""Columns that are left out first if a table is too wide."""
Summary = Mapping[str, Any]
Wide = tuple[Table, int]
"""A table, and the characters of a line that show its headings and values whole."""


def sorted_by_cost(rows: Sequence[Summary]) -> tuple[list[Summary], str]:
    """The rows in the order of the table, and a line that says what they are sorted by.

    Runs that have not reached the target are last. Without a target for all runs, they are sorted
    by their last accuracy, with validation data by that of the validation.
    """
    target = all(row.get("target") is not None for row in rows)
    validation = all("validation_accuracy" in row for row in rows)
    accuracy = "validation_accuracy" if validation else "accuracy"
    called = accuracy.replace("_", " ")

    def best(row: Summary) -> float:
        value = row.get(accuracy)
        return math.inf if value is None else -value  # a diverged model has none

    def cost(row: Summary) -> tuple[float, float]:
        seconds = row["seconds_to_target"]
        return math.inf if seconds is None else seconds, best(row)

    if not target:
        return sorted(rows, key=best), f"sorted by {called} after the last round, best first"
    missed = sum(row["seconds_to_target"] is None for row in rows)
    line = f"sorted by simulated seconds to the target {called}"
    if missed:
        line += f"; {missed} of {len(rows)} runs did not reach it"
    return sorted(rows, key=cost), line


def runs_table(varied: Sequence[str], rows: Sequence[Summary], width: int) -> Wide:
    """One line per run; runs that are equal because a setting does not apply have one line.

    Args:
        varied: names of the settings with several values.
        rows: summaries of the runs, with these settings.
        width: characters of a line.
    """
    targets = [row.get("target") for row in rows]
    columns = TOTALS if None in targets else TO_TARGET
    if any(row.get("transition_accuracy") is not None for row in rows):
        columns = {**columns, "transition_accuracy": ("first ten rounds of sessions", ".3f")}
    columns, kind = with_validation(columns, [dict(row) for row in rows])
    columns = {key: (HEADINGS.get(key, name), form) for key, (name, form) in columns.items()}
    common = f"{kind} {targets[0]}" if len(set(targets)) == 1 else f"each run's target {kind}"
    first = {row["directory"]: row for row in reversed(rows)}
    shown = [row for row in rows if first[row["directory"]] is row]
    return _table(
        None if None in targets else f"cost of {common}",
        [name.replace("_", " ") for name in varied],
        [[_shown(row[name]) for name in varied] for row in shown],
        columns,
        [_cells(row, columns) for row in shown],
        width,
    )


def _shown(value: Any) -> str:
    """The value of a setting; empty if it has no effect on a run."""
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else short(str(value))


def _cells(row: Summary, columns: Mapping[str, tuple[str, str]]) -> list[str]:
    """The cells of a run; only the seconds say that the target was not reached."""
    cells = dict(zip(columns, cells_of(dict(row), dict(columns)), strict=True))
    if row.get("seconds_to_target", 0.0) is None:
        cells |= {key: "-" for key in ("rounds_to_target", "mib_to_target") if key in cells}
    return list(cells.values())


def seeds_table(varied: Sequence[str], rows: Sequence[Summary], width: int) -> Wide | None:
    """Mean and range over the seeds of each combination; None if no seeds vary.

    Args:
        varied: names of the settings with several values.
        rows: summaries of the runs, with these settings, in the order of the table of runs.
        width: characters of a line.
    """
    if "seed" not in varied:
        return None
    others = [name for name in varied if name != "seed"]
    groups: dict[tuple[str, ...], dict[str, Summary]] = {}
    for row in rows:
        key = tuple(_shown(row[name]) for name in others)
        groups.setdefault(key, {}).setdefault(row["directory"], row)
    if all(len(runs) < 2 for runs in groups.values()):
        return None
    target = all(row.get("target") is not None for row in rows)
    validation = all("validation_accuracy" in row for row in rows)
    accuracy = "validation_accuracy" if validation else "accuracy"
    columns = {"seeds": ("seeds", ""), accuracy: (accuracy.replace("_", " "), ".3f")}
    if target:
        columns |= {"reached": ("target reached", ""), "seconds_to_target": ("simulated s", ".2f")}
    else:
        columns |= {"sim_seconds": ("simulated s", ".2f"), "joules": (HEADINGS["joules"], ".3f")}
    lines: list[tuple[float, list[str], list[str]]] = []
    for key, by_folder in groups.items():
        runs = list(by_folder.values())
        cells = []
        for name, (_, form) in columns.items():
            if name == "seeds":
                cells.append(str(len(runs)))
            elif name == "reached":
                hit = sum(run["seconds_to_target"] is not None for run in runs)
                cells.append(f"{hit} of {len(runs)}")
            else:
                cells.append(_mean_and_range([run[name] for run in runs], form))
        lines.append((_rank(runs, accuracy, target), list(key), cells))
    lines.sort(key=lambda line: line[0])
    return _table(
        "mean (range) over seeds",
        [name.replace("_", " ") for name in others],
        [given for _, given, _ in lines],
        columns,
        [cells for _, _, cells in lines],
        width,
    )


def _rank(runs: Sequence[Summary], accuracy: str, target: bool) -> float:
    """Mean cost of a combination; infinity if a seed has not reached the target."""
    if target:
        values = [run["seconds_to_target"] for run in runs]
        return math.inf if None in values else statistics.mean(values)
    values = [run[accuracy] for run in runs]
    return math.inf if None in values else -statistics.mean(values)


def _mean_and_range(values: Sequence[float | None], form: str) -> str:
    """The mean and the range of the values that exist."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    mean, low, high = (in_form(f(known), form) for f in (statistics.mean, min, max))
    return mean if low == high else f"{mean} ({low}-{high})"


def _table(
    title: str | None,
    names: Sequence[str],
    given: Sequence[Sequence[str]],
    columns: Mapping[str, tuple[str, str]],
    cells: Sequence[Sequence[str]],
    width: int,
) -> Wide:
    """A table whose headings are whole; if it is too wide, it has fewer columns."""
    headings = [*names, *(heading for heading, _ in columns.values())]
    lines = [[*some, *line] for some, line in zip(given, cells, strict=True)]
    widths = [_width(heading, [line[p] for line in lines]) for p, heading in enumerate(headings)]
    kept = list(range(len(headings)))

    def total(each: Sequence[int]) -> int:
        return sum(each[place] + 3 for place in kept) + 1  # two spaces and a line

    for key in LAST:
        if total(widths) > width and key in columns:
            kept.remove(len(names) + list(columns).index(key))
    for place in kept:  # headings on one line, as far as there is space
        more = max(0, len(headings[place]) - widths[place])
        if total(widths) + more <= width:
            widths[place] += more
    table = Table(title=title)
    for place in kept:
        side: Literal["left", "right"] = "left" if place < len(names) else "right"
        table.add_column(headings[place], justify=side, width=widths[place])
    for line in lines:
        table.add_row(*(line[place] for place in kept))
    return table, total(widths)


def _width(heading: str, values: Sequence[str]) -> int:
    """Characters of a column whose heading breaks only between words."""
    return max(map(len, [*heading.split(), *values]))


def print_tables(varied: Sequence[str], rows: Sequence[Summary]) -> None:
    """Print the table of the runs, how it is sorted, and means over seeds."""
    console = Terminal()
    ordered, line = sorted_by_cost(rows)
    _print(console, *runs_table(varied, ordered, console.width))
    console.tell(line)
    means = seeds_table(varied, ordered, console.width)
    if means is not None:
        _print(console, *means)


def _print(console: Terminal, table: Table, needed: int) -> None:
    """Print a table; wider than the console if its headings and values need it."""
    wide = console if needed <= console.width else Terminal(width=needed)
    wide.print(table)
