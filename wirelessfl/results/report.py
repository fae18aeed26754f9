"""A page on stored runs: one HTML file with curves, costs of targets, clients and settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import check_writable, replacing
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.packages import bokeh, version
from wirelessfl.base.rows import is_accuracy
from wirelessfl.base.wording import count_of
from wirelessfl.config.sections import PLACES
from wirelessfl.engine.rounds.client_log import NAMES as PARTS
from wirelessfl.results.report_clients import clients_of, log_of, spending
from wirelessfl.results.report_figures import AIR, AXES, POINTS, figures, looks_of_cases
from wirelessfl.results.selection import MACHINE, NAMES, Case, value_text, varied
from wirelessfl.results.tables import (
    check_target,
    last_value,
    monitor_of,
    number_text,
    summarised,
    table_of_cases,
    with_rows,
)
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.targets import Monitor

TEMPLATE = Path(__file__).with_name("report.html")
LEVELS = (0.5, 0.8, 0.95)
"""Default targets, as fractions of the way from the first to the best value of all runs."""
STEP = 0.05
"""Accuracies that are default targets are multiples of it; other values have two digits."""


def write_report(
    cases: Sequence[Case],
    path: Path,
    targets: float | Sequence[float] | None,
    field: str | None,
    tests: int,
) -> Path:
    """Write the page of ``Runs.report``, whose arguments and errors these are, on some cases."""
    resources = bokeh("resources").Resources(mode="inline", components=["bokeh"])
    _check_tasks([run for case in cases for run in case.runs])
    cases = with_rows(cases, tests)
    monitor = monitor_of(cases, field)
    levels = _levels(cases, monitor) if targets is None else np.atleast_1d(targets).tolist()
    for level in levels:
        check_target(level, monitor)
    by_run = {id(run): (case, run) for case in reversed(cases) for run in reversed(case.runs)}
    runs = [(case, run) for case, run in reversed(by_run.values())]
    logs = {id(run): log_of(run) for _, run in runs}
    looks = looks_of_cases([case.title for case in cases])
    clients = [clients_of(case, run, logs[id(run)]) for case, run in runs]
    page = {
        "title": _title([run for _, run in runs]),
        "facts": _facts([run for _, run in runs]),
        "version": version(),
        "bokeh": resources.js_raw[0],
        "cases": [(case.title, look) for case, look in zip(cases, looks, strict=True)],
        "several": any(len(case.runs) > 1 for case in cases),
        "members": "runs" if any(case.repeated_seeds for case in cases) else "seeds",
        "figures": figures(cases, monitor.field, looks, [one["columns"] for one in clients]),
        "targets": [_target(cases, level, monitor, tests) for level in levels],
        "notes": summarised(cases, None, field, None, tests).notes,
        "settings": _settings(cases),
        "spending": spending(cases, logs),
        "parts": PARTS,
        "measured": monitor.field.replace("_", " "),
        "runs": [_run(run, monitor, tests) for _, run in runs],
        "clients": clients,
        "air": any(AIR[0] in row for _, run in runs for row in run.rows),
        "thinned": POINTS if any(len(rows) > POINTS for c in cases for rows in c.rows) else None,
    }
    with replacing(path) as draft:
        draft.write_text(_template().render(page), encoding="utf-8")
    return path


def checked_output(path: str | Path) -> Path:
    """The path of the page; raises ``ConfigError`` unless it is a .html in a folder to write."""
    path = expanded(path)
    if path.suffix != ".html":
        raise ConfigError(f"output is {path}: name a .html file.")
    if not path.parent.is_dir():
        raise ConfigError(f"output is {path}: there is no folder {path.parent}. Make it first.")
    check_writable(path.parent, "output")
    return path


def _template() -> Any:
    from jinja2 import Environment  # comes with bokeh

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = lambda value: number_text(float(f"{value:.3g}"))
    # Figures define a model where they first name it, so the order of keys matters.
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "separators": (",", ":")}
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def _check_tasks(runs: Sequence[RunResult]) -> None:
    """Refuse runs of several tasks beside others, and classes beside regression."""
    by_tasks = {tuple(run.tasks) if len(run.tasks) > 1 else (): run for run in runs if run.rows}
    by_kind = {"accuracy" in run.rows[-1]: run for run in runs if run.rows}
    for different, what in ((by_tasks, "train other tasks"), (by_kind, "have no common measure")):
        if len(different) > 1:
            first, second, *_ = different.values()
            raise ConfigError(
                f"{first.directory} and {second.directory} {what}: write a report of each."
            )


def _levels(cases: Sequence[Case], monitor: Monitor) -> list[float]:
    """Targets unless some are given: those of the runs, and values on the way to the best one."""
    levels = {float(s["target"]) for case in cases for s in case.settings if s.get("target")}
    scores = [[monitor.score(row) for row in rows] for case in cases for rows in case.rows if rows]
    start = min((ours[0] for ours in scores if math.isfinite(ours[0])), default=math.nan)
    best = max(score for ours in scores for score in ours)
    for score in (start + share * (best - start) for share in LEVELS):
        if math.isfinite(score):
            step = STEP if is_accuracy(monitor.field) else 10 ** (_exponent(score) - 1)
            level = round(math.floor(score / step + 1e-9) * step, 12)
            levels |= {level if monitor.larger else -level} if start < level <= best else set()
    return sorted(levels, reverse=not monitor.larger)


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _title(runs: Sequence[RunResult]) -> str:
    """Algorithms by data sets."""
    by_data: dict[str, dict[str, None]] = {}
    for run in runs:
        name, _, data = run.label.partition(" on ")
        by_data.setdefault(data, {})[NAMES.get(name, name)] = None
    return "; ".join(f"{', '.join(names)} on {data}" for data, names in by_data.items())


def _facts(runs: Sequence[RunResult]) -> list[str]:
    seeds = sorted({int(run.settings["seed"]) for run in runs})
    listed = ", ".join(map(str, seeds[:6])) + (" and more" if len(seeds) > 6 else "")
    unfinished = sum(not run.finished for run in runs)
    facts = [count_of(len(runs), "run"), f"seed{'s' if len(seeds) > 1 else ''} {listed}"]
    return facts + ([f"{unfinished} unfinished"] if unfinished else [])


def _target(
    cases: Sequence[Case], level: float, monitor: Monitor, tests: int
) -> tuple[str, list[tuple[int, dict[str, str]]]]:
    """A target, and its costs as texts: the place of each case, and its cells by column."""
    table, cases_of_rows = table_of_cases(cases, level, monitor.field, "seconds", tests)
    places = {id(case): place for place, case in enumerate(cases)}
    lines = [
        (places[id(case)], dict(zip(table.headings, table.cells(row), strict=True)))
        for case, row in zip(cases_of_rows, table.rows, strict=True)
    ]
    return table.title.removeprefix("costs until "), lines


def _settings(cases: Sequence[Case]) -> dict[str, Any]:
    """Values of settings that differ, by setting and case, and what all runs have in common."""
    every = [settings for case in cases for settings in case.settings]
    names = varied(every)
    hidden = {*names, *PLACES, *MACHINE, "seed"}
    return {
        "lines": {
            name: [
                " | ".join(dict.fromkeys(value_text(s.get(name)) for s in case.settings))
                for case in cases
            ]
            for name in names
        },
        "common": {name: value_text(v) for name, v in every[0].items() if name not in hidden},
    }


def _run(run: RunResult, monitor: Monitor, tests: int) -> dict[str, Any]:
    """A line of the list at the end of the page."""
    try:
        date = str(RunFolder(run.directory).about().get("date", ""))[:16].replace("T", " ")
    except ConfigError:  # damaged
        date = ""
    shape = "{:.3f}" if is_accuracy(monitor.field) else "{:.4g}"
    by_task = [run.rows_of(task) for task in run.tasks] or [run.rows]
    finals = [last_value(rows, monitor.field, tests) for rows in by_task if rows]
    return {
        "folder": str(run.directory),
        "seed": run.settings["seed"],
        "state": run.ended or ("finished" if run.finished else "unfinished"),
        "value": ", ".join("diverged" if v is None else shape.format(v) for v in finals) or "-",
        "costs": [number_text(run.rows[-1][f]) if run.rows else "-" for f in AXES.values()],
        "date": date,
        "notes": run.notes,
    }
