"""What the command line shows: progress while it runs, the closing table, the lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from wirelessfl.runs.directory import Row


@contextmanager
def progress(label: str, rounds: int, console: Console) -> Iterator[Callable[[Row], None]]:
    """A progress bar over global rounds, fed with rows; silent when not on a terminal."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("round {task.completed}/{task.total}  {task.fields[note]}"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=rounds, note="")

        def show(row: Row) -> None:
            note = f"accuracy {row['accuracy']:.3f}  {row['sim_seconds']:.1f} s simulated"
            bar.update(task, completed=row["round"], note=note)

        yield show


TOTALS: dict[str, tuple[str, str]] = {
    "round": ("rounds", "d"),
    "accuracy": ("accuracy", ".3f"),
    "uplink_mib": ("MiB a client", ".2f"),
    "sim_seconds": ("simulated s", ".2f"),
    "joules": ("J a client", ".3f"),
    "wall_seconds": ("wall s", ".1f"),
}
TO_TARGET: dict[str, tuple[str, str]] = {
    "accuracy": ("accuracy", ".3f"),
    "rounds_to_target": ("rounds", "d"),
    "mib_to_target": ("MiB a client", ".2f"),
    "seconds_to_target": ("simulated s", ".2f"),
    "wall_seconds": ("wall s", ".1f"),
}


def closing_table(summaries: Sequence[dict[str, Any]]) -> Table:
    """One line a run: its final accuracy, and what it took, to the target where one is set."""
    targets = {summary.get("target") for summary in summaries}
    target = targets.pop() if len(targets) == 1 else None
    title = None if target is None else f"rounds, MiB and simulated seconds to accuracy {target:g}"
    table = Table(title=title)
    table.add_column("run")
    columns = TOTALS if target is None else TO_TARGET
    for heading, _ in columns.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in summaries:
        values = [summary[key] for key in columns]
        cells = [
            "not reached" if value is None else format(value, form)
            for value, (_, form) in zip(values, columns.values(), strict=True)
        ]
        table.add_row(summary.get("label", summary["algorithm"]), *cells)
    return table


@contextmanager
def sweep_progress(
    runs: Sequence[tuple[str, int]], console: Console
) -> Iterator[Callable[[int, Row], None]]:
    """A bar for all runs together and one for each at work; silent when not on a terminal.

    Args:
        runs: label and rounds of each.
        console: where to draw.
    """
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}  {task.fields[note]}"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        rounds = [number for _, number in runs]
        whole = bar.add_task(f"{len(runs)} runs, global rounds", total=sum(rounds), note="")
        tasks: dict[int, Any] = {}
        reached = [0] * len(runs)

        def show(place: int, row: Row) -> None:
            if place not in tasks:
                tasks[place] = bar.add_task(runs[place][0], total=rounds[place], note="")
            reached[place] = row["round"]
            bar.update(tasks[place], completed=row["round"], note=f"{row['accuracy']:.3f}")
            if row["round"] == rounds[place]:
                bar.remove_task(tasks.pop(place))
            bar.update(whole, completed=sum(reached))

        yield show
