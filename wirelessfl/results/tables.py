"""Tables of groups of runs: accuracies, and costs until a target, as mean and range."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from wirelessfl.air.links import EQUAL_SHARES, costly
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.rows import (
    has_diverged,
    is_accuracy,
    measured_field,
    numeric_fields,
    unknown_field,
)
from wirelessfl.base.terminal import LATEX, rendered
from wirelessfl.base.wording import heading_of, shown, suggestion
from wirelessfl.results.selection import Case, value_text
from wirelessfl.runs.targets import Monitor, cost_to

COSTS = {
    "rounds": ("round", "rounds"),
    "mib": ("uplink_mib", "MiB/client"),
    "seconds": ("sim_seconds", "simulated s"),
    "joules": ("joules", "J/client"),
}
"""Costs by short name: field of rows and heading."""
NOT_REACHED = "not reached"


@dataclass(frozen=True)
class Table:
    """A table of groups of runs.

    >>> import wirelessfl
    >>> configs = wirelessfl.combinations("fedavg", {"clients": [4, 8], "rounds": 1})
    >>> runs = wirelessfl.results.Runs(wirelessfl.sweep(configs, root="my-two-runs"))
    >>> table = runs.table("clients")
    >>> sorted(row["clients"] for row in table.rows), [*table.headings][:2]
    ([4, 8], ['clients', 'runs'])

    Args:
        title: what the costs are.
        headings: heading of each column, by key.
        rows: one dict per group, in order: settings that distinguish groups, by flag name, or as
            ``rounds_setting`` beside a column of that name; numbers of ``runs``,
            of ``unfinished`` and ``diverged`` runs and of those that ``reached`` the target; and
            means, with lowest and highest values in ``*_low`` and ``*_high``, None without a value.
            Accuracy and loss are those of the runs that have not diverged. If only some runs
            reach the target, means of costs are lower bounds: the other runs count with their
            whole costs, and the highest cost is unknown, None.
        means: keys of the columns with means.
        notes: why runs may not be comparable, and what their bands cost, one line each.
    """

    title: str
    headings: dict[str, str]
    rows: list[dict[str, Any]]
    means: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def cells(self, row: dict[str, Any]) -> list[str]:
        """The cells of a row, as text."""
        return [self._cell(row, key) for key in self.headings]

    def _cell(self, row: dict[str, Any], key: str) -> str:
        value = row[key]
        if key == "runs":
            states = [f"{row[s]} {s}" for s in ("unfinished", "diverged") if row[s]]
            return f"{value}" + f" ({', '.join(states)})" * bool(states)
        if key == "reached":
            return f"{value} of {row['runs']}"
        if key not in self.means:
            return value_text(value)
        if value is None:
            return "-" if key in ("accuracy", "loss", "final") else NOT_REACHED
        low, high = row[f"{key}_low"], row[f"{key}_high"]
        shape = accuracy_text if key in ("accuracy", "loss") else number_text
        if high is None:
            return f"at least {shape(value)}"
        return shape(value) if low == high else f"{shape(value)} ({shape(low)} to {shape(high)})"

    def __str__(self) -> str:
        """The table as text, as wide as it needs to be."""
        lines = [self.title] if self.title else []
        lines.append(rendered(list(self.headings.values()), [self.cells(r) for r in self.rows]))
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        head = "".join(f"<th>{escape(text)}</th>" for text in self.headings.values())
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in self.cells(row))}</tr>"
            for row in self.rows
        )
        below = "".join(f"<p>Note: {escape(note)}.</p>" for note in self.notes)
        return f"<table><caption>{escape(self.title)}</caption><tr>{head}</tr>{body}</table>{below}"

    def to_csv(self) -> str:
        """The numbers as CSV: means, lowest and highest values in columns of their own."""
        file = io.StringIO()
        writer = csv.DictWriter(file, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return file.getvalue()

    def to_latex(self) -> str:
        """The table in LaTeX, for the package booktabs."""
        aligned = "".join("r" if key in self.means else "l" for key in self.headings)
        rows = [
            " & ".join(text.translate(LATEX) for text in cells) + r" \\"
            for cells in [list(self.headings.values()), *map(self.cells, self.rows)]
        ]
        lines = [f"% {note}" for note in (self.title, *self.notes) if note]
        lines += [rf"\begin{{tabular}}{{{aligned}}}", r"\toprule", rows[0], r"\midrule"]
        return "\n".join([*lines, *rows[1:], r"\bottomrule", r"\end{tabular}"]) + "\n"

    def to_json(self) -> str:
        """The rows as JSON."""
        return json.dumps(self.rows, indent=2)


def accuracy_text(value: float) -> str:
    """An accuracy in a table."""
    return f"{value:.3f}"


def number_text(value: float) -> str:
    """A number in a table, with about three digits and no exponent if it is not tiny."""
    if abs(value) < 1e15 and value == int(value):
        return f"{value:.0f}"
    for least, digits in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= least:
            return f"{value:.{digits}f}"
    return f"{value:#.3g}"


def summarised(
    cases: Sequence[Case],
    target: float | None,
    field: str | None,
    sort: str | None,
    tests: int,
) -> Table:
    """The table of these cases; arguments and errors are those of ``Runs.table``."""
    return table_of_cases(cases, target, field, sort, tests)[0]


def table_of_cases(
    cases: Sequence[Case],
    target: float | None,
    field: str | None,
    sort: str | None,
    tests: int,
) -> tuple[Table, list[Case]]:
    """The table of these cases, and the case of each of its rows."""
    if sort is not None and sort not in COSTS:
        near = suggestion(sort, COSTS)
        raise ConfigError(f"sort is {shown(sort)}.{near} Choose {', '.join(COSTS)}.")
    cases = with_rows(cases, tests)
    monitor = monitor_of(cases, field)
    if target is None:
        goals = {s.get("target") for case in cases for s in case.settings}
        target = goals.pop() if len(goals) == 1 else None
    if target is not None:
        check_target(target, monitor)
    tasks = any(case.task is not None for case in cases)
    shown_first = measured_field(row for case in cases for rows in case.rows for row in rows)
    keys = _keys(cases[0].names, shown_first)
    rows = [
        dict(zip(keys.values(), case.values, strict=True))
        | _row(case, target, monitor, tests, tasks, shown_first)
        for case in cases
    ]

    def order(place: int) -> tuple[float, ...]:
        row = rows[place]
        if target is None and sort is None:
            best = row.get("final", row[shown_first])
            if best is None:  # no row has the field
                return (float("inf"),)
            return (-best if monitor.larger else best,)
        value = row[sort or "seconds"]
        missed = 1 - row["reached"] / row["runs"] if target is not None else 0.0
        return missed, float("inf") if value is None else value

    measured = shown_first if tests == 1 else f"{shown_first} ({tests} tests)"
    headings = {key: heading_of(key) for key in keys.values()}
    headings |= ({"task": "task"} if tasks else {}) | {"runs": "runs", shown_first: measured}
    if monitor.field != shown_first:
        headings["final"] = monitor.field.replace("_", " ")
    headings |= {"reached": "reached"} if target is not None else {}
    headings |= {key: heading for key, (_, heading) in COSTS.items()}
    means = tuple(key for key in (shown_first, "final", *COSTS) if key in headings)
    kind = monitor.field.replace("_", " ")
    title = "costs of the whole runs" if target is None else f"costs until {kind} {target:g}"
    notes = [note for case in cases for note in case.notes if "unfinished" not in note]
    ends = {case.title: _means([rows[-1] for rows in case.rows if rows]) for case in cases}
    notes += [f"{title}: {text}" for title, end in ends.items() if (text := costly(end))]
    places = sorted(range(len(rows)), key=order)
    table = Table(title, headings, [rows[place] for place in places], means, tuple(notes))
    return table, [cases[place] for place in places]


def _keys(names: Sequence[str], measured: str) -> dict[str, str]:
    """The column of each setting, whose name may be that of a cost or of what is measured."""
    columns = {measured, "final", *COSTS}
    return {name: f"{name}_setting" if name in columns else name for name in names}


def _means(ends: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Means of what runs with decided bands are compared by, of the last rows of runs."""
    names = [name for name in ("joules", *EQUAL_SHARES) if all(name in end for end in ends)]
    return {name: statistics.mean(end[name] for end in ends) for name in names}


def with_rows(cases: Sequence[Case], tests: int) -> list[Case]:
    """The cases with rows, after a check of the number of tests that are averaged."""
    if not isinstance(tests, int) or tests < 1:
        raise ConfigError(f"tests is {shown(tests)}: give a number of tests >= 1.")
    kept = [case for case in cases if any(case.rows)]
    if not kept:
        raise ConfigError("the runs have no rows yet.")
    return kept


def monitor_of(cases: Sequence[Case], field: str | None) -> Monitor:
    """The field of rows that a target refers to, see ``Runs.table``."""
    rows_of_runs = [row for case in cases for rows in case.rows for row in rows]
    if field is None:
        stated = {s.get("monitor") for case in cases for s in case.settings}
        common = stated.pop() if len(stated) == 1 else None
        field = measured_field(rows_of_runs)
        validated = all(f"validation_{field}" in row for row in rows_of_runs)
        field = common or (f"validation_{field}" if validated else field)
    fields = numeric_fields(rows_of_runs)
    if field not in fields:
        raise ConfigError(unknown_field("field", field, fields, rows_of_runs))
    return Monitor.of(field, rows_of_runs[0])


def check_target(target: float, monitor: Monitor) -> None:
    """Refuse targets that are not numbers, and accuracies outside [0, 1]."""
    number = isinstance(target, int | float) and not isinstance(target, bool)
    if not number or not abs(target) < float("inf"):
        raise ConfigError(f"target is {shown(target)}: give a finite number.")
    if is_accuracy(monitor.field) and not 0 < target <= 1:
        raise ConfigError(
            f"target is {shown(target)}: give an accuracy in (0, 1], such as 0.8 for 80 %."
        )


def last_value(rows: Sequence[dict[str, Any]], field: str, tests: int) -> float | None:
    """Mean of a field over the last rows, without the initial model's; None if it has no value.

    An accuracy has none if the model has diverged.
    """
    last = (rows[1:] or rows)[-tests:]
    values = [None if is_accuracy(field) and has_diverged(row) else row.get(field) for row in last]
    numbers = [float(value) for value in values if value is not None]
    return statistics.mean(numbers) if len(numbers) == len(values) else None


def _row(
    case: Case, target: float | None, monitor: Monitor, tests: int, tasks: bool, measured: str
) -> dict[str, Any]:
    """The numbers of a case."""
    seeds = [rows for rows in case.rows if rows]
    row: dict[str, Any] = {"task": case.task} if tasks else {}
    row |= {"runs": len(case.runs), "unfinished": sum(not run.finished for run in case.runs)}
    row["diverged"] = sum(last_value(rows, measured, tests) is None for rows in seeds)
    row |= _spread(measured, [last_value(rows, measured, tests) for rows in seeds])
    if monitor.field != measured:
        row |= _spread("final", [last_value(rows, monitor.field, tests) for rows in seeds])
    ends: list[Mapping[str, Any]] = [rows[-1] for rows in seeds]
    reached = len(seeds)
    if target is not None:
        costs = [cost_to(rows, target, tests, monitor) for rows in seeds]
        ends = [cost.row for cost in costs]
        reached = row["reached"] = sum(cost.reached for cost in costs)
    for key, (field, _) in COSTS.items():
        row |= _spread(key, [end[field] for end in ends] if reached else [])
        if reached < len(seeds):
            row[f"{key}_high"] = None  # of the runs that miss the target
    return row


def _spread(key: str, values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean, lowest and highest of the known values; None if there are none."""
    numbers = [float(value) for value in values if value is not None]
    if not numbers:
        return {key: None, f"{key}_low": None, f"{key}_high": None}
    return {key: statistics.mean(numbers), f"{key}_low": min(numbers), f"{key}_high": max(numbers)}
