"""Output of the command line: the progress of runs and sweeps, and summary tables."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from wirelessfl.air.links import compared
from wirelessfl.base.import_paths import short
from wirelessfl.base.rows import finite
from wirelessfl.base.terminal import Terminal, say
from wirelessfl.base.wording import count_of, fixed
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.observers.console import DIVERGED, Console, metrics_of
from wirelessfl.runs.summaries import PREDICTION_HEAD, Transition, prediction_rows, predictions
from wirelessfl.training.workers.processes import fork_server

if TYPE_CHECKING:
    from wirelessfl.runs.result import RunResult
    from wirelessfl.training.workers.shards import Shards

ABSENT = dict.fromkeys(("accuracy", "validation_accuracy", "loss", "validation_loss"), DIVERGED)
"""Text of missing values by key of a summary; others are costs of a target not reached."""
TOTALS: dict[str, tuple[str, str]] = {
    "round": ("rounds", "d"),
    "accuracy": ("accuracy", ".3f"),
    "uplink_mib": ("MiB/client", ".2f"),
    "sim_seconds": ("simulated s", ".2f"),
    "joules": ("J/client", ".3f"),
    "wall_seconds": ("wall s", ".1f"),
}
TO_TARGET: dict[str, tuple[str, str]] = {
    "accuracy": ("accuracy", ".3f"),
    "rounds_to_target": ("rounds", "d"),
    "mib_to_target": ("MiB/client", ".2f"),
    "seconds_to_target": ("simulated s", ".2f"),
    "wall_seconds": ("wall s", ".1f"),
}


def closing_table(summaries: Sequence[dict[str, Any]]) -> Table:
    """A table with one line per run: final accuracy and cost, or cost of reaching the target."""
    targets = [summary.get("target") for summary in summaries]
    columns = TO_TARGET if all(target is not None for target in targets) else TOTALS
    common = targets[0] if len(set(targets)) == 1 else None
    columns, kind = _with_validation(columns, summaries)
    title = None if common is None else f"rounds, MiB and simulated seconds to {kind} {common}"
    table = Table(title=title)
    table.add_column("run", overflow="fold")
    several = None not in targets and common is None
    if several:
        table.add_column("target", justify="right")
    for heading, _ in columns.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for summary, target in zip(summaries, targets, strict=True):
        cells = [f"{target:g}"] if several else []
        cells += summary_cells(summary, columns)
        table.add_row(short(summary.get("label", summary["algorithm"])), *cells)
    return table


def summary_cells(summary: dict[str, Any], columns: dict[str, tuple[str, str]]) -> list[str]:
    """The cells of a run in the summary table; the columns are given by key of the summary.

    Small numbers keep three digits, and those whose digits would fill a column have three.
    """
    values = [(key, summary.get(key), form) for key, (_, form) in columns.items()]
    return [
        ABSENT.get(key, "not reached")
        if value is None
        else fixed(value, int(form[1]))
        if form.endswith("f")
        else format(value, form if abs(value) < 1e7 else ".3g")
        for key, value, form in values
    ]


def _with_validation(
    columns: dict[str, tuple[str, str]], summaries: Sequence[dict[str, Any]]
) -> tuple[dict[str, tuple[str, str]], str]:
    """The summary table's columns, and the name of the metric that the target refers to.

    If all runs have validation accuracy, it replaces wall-clock seconds, because both do not fit
    into 80 characters.
    """
    if any("accuracy" not in summary for summary in summaries):  # regression
        names = {"accuracy": ("loss", ("loss", ".4g"))}
        columns = dict(names.get(key, (key, column)) for key, column in columns.items())
    monitors = {summary["monitor"] for summary in summaries if "monitor" in summary}
    if monitors or "loss" in columns:
        return columns, " or ".join(sorted(monitors)) or "loss"
    if not all("validation_accuracy" in summary for summary in summaries):
        return columns, "accuracy"
    others = {key: value for key, value in columns.items() if key != "wall_seconds"}
    return {"validation_accuracy": ("val.", ".3f"), **others}, "validation accuracy"


def predictions_table(predicted: dict[str, dict[str, float | None]]) -> Table:
    """A table with what a design has predicted and what the run has taken."""
    table = Table(title="the design and its run")
    for heading in PREDICTION_HEAD:
        table.add_column(heading, justify="right" if heading else "left")
    for cells in prediction_rows(predicted):
        table.add_row(*cells)
    return table


def transitions_table(changes: Sequence[Transition]) -> Table:
    """A table with one line per session after the first: accuracy around the change of clients."""
    table = Table(title="accuracy when clients change")
    for heading in ("session", "before", "lowest", "first ten rounds", "rounds to recover"):
        table.add_column(heading, justify="right")
    for change in changes:
        numbers = (change.before, change.before - change.drop, change.mean_accuracy)
        rounds = change.rounds_to_recover
        table.add_row(
            str(change.session),
            *(DIVERGED if math.isnan(number) else format(number, ".3f") for number in numbers),
            "never" if rounds is None else str(rounds),
        )
    return table


def submodels_line(settings: Mapping[str, Any], last: Row) -> str | None:
    """How wide the clients' submodels are, and how many clients trained each parameter.

    Args:
        settings: settings of the run, by flag name.
        last: its last row.

    Returns:
        One sentence; None without submodels of clients, and with several tasks.
    """
    if "coverage" not in last or "task" in last:
        return None
    from wirelessfl.results.selection import value_text  # loads PyTorch

    if settings.get("budget") in ("deadline", "fastest"):
        widths = f"chosen in each round (budget {settings['budget']})"
    elif settings.get("widths"):
        widths = value_text(settings["widths"])
    elif settings.get("capacities"):
        unit = "" if settings.get("budget") == "width" else f" of {settings['budget']}"
        widths = f"{value_text(settings['capacities'])}{unit}, dealt evenly over the clients"
    else:
        return None
    return (
        f"widths of submodels: {widths}. In the last round, at least "
        f"{count_of(int(last['coverage']), 'client')} trained each covered parameter; "
        f"{100 * last['uncovered']:.3g} % of the parameters were not covered."
    )


@contextmanager
def sweep_progress(
    runs: Sequence[tuple[str, int]],
    console: Terminal,
    fields: Mapping[str, str] = MappingProxyType({"accuracy": ".3f"}),
) -> Iterator[Callable[[int, Row], None]]:
    """A progress bar for all runs and one per active run; shows nothing outside a terminal.

    Args:
        runs: label and number of rounds of each run.
        console: console of the bars.
        fields: fields of rows to show, with their formats.

    Yields:
        A function that receives the index of a run and each of its rows.
    """
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}  {task.fields[note]}", markup=False),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        rounds = [number for _, number in runs]
        whole = bar.add_task(f"{len(runs)} runs, global rounds", total=sum(rounds), note="")
        tasks: dict[int, Any] = {}
        reached = [0] * len(runs)

        def show(index: int, row: Row) -> None:
            if index not in tasks:
                tasks[index] = bar.add_task(runs[index][0], total=rounds[index], note="")
            reached[index] = max(reached[index], row["round"])  # with tasks, the most advanced
            bar.update(tasks[index], completed=row["round"], note=metrics_of(row, fields))
            if row["round"] == rounds[index] and "task" not in row:
                bar.remove_task(tasks.pop(index))
            bar.update(whole, completed=sum(reached))

        yield show


def watch(
    shards: Shards,
    arguments: argparse.Namespace,
    start: Callable[..., RunResult],
    *,
    shown: bool = True,
) -> dict[str, Any] | None:
    """Execute a run, and show its progress and, if ``shown``, its summary table.

    Returns:
        The summary; None in all processes but the first.
    """
    if shards.rank > 0:
        start(shards=shards)
        return None
    console = Terminal(stderr=True, quiet=arguments.quiet)
    progress = Console(console, quiet=arguments.quiet)
    tell = None if arguments.quiet else console.tell  # notes are warnings, and are shown
    with fork_server.forking(shards.count == 1):
        result = start(observers=[progress], on_note=tell, shards=shards)
    summary = _summary(result)
    if shown and arguments.json:
        tasks = result.summaries()
        say(json.dumps({**summary, "tasks": tasks} if len(tasks) > 1 else summary, indent=2))
    elif shown:
        _close(result, summary)
    return summary


def _summary(result: RunResult) -> dict[str, Any]:
    """The summary of a run, with transitions between sessions and predictions if it has any."""
    summary, changes = result.summary(), _changes(result)
    if changes:
        summary["transitions"] = finite([vars(change) for change in changes])
    predicted = predictions(result.settings, result.rows)
    if predicted is not None:
        summary["predicted"] = predicted
    return summary


def _close(result: RunResult, summary: dict[str, Any]) -> None:
    """Show the closing tables of a run."""
    changes, predicted = _changes(result), summary.get("predicted")
    console = Terminal()
    console.print(closing_table(result.summaries()))
    bought = compared(summary)
    if bought is not None:
        console.tell(bought)
    if predicted is not None:
        console.print(predictions_table(predicted))
    if changes:
        console.print(transitions_table(changes))
    widths = submodels_line(result.settings, result.rows[-1])
    if widths is not None:
        console.tell(widths)
    if result.ended is not None:
        console.tell(f"the run {result.ended}.")
    console.tell(f"rows, parameters and settings: {summary['directory']}")


def _changes(result: RunResult) -> list[Transition]:
    """Accuracy at each change of clients; empty unless sessions' first rounds were evaluated."""
    if result.config.sessions.sessions is None:
        return []
    try:
        return result.transitions()
    except ValueError:  # the first rounds of sessions were not evaluated
        return []
