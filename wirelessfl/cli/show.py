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


COLUMNS: dict[str, tuple[str, str]] = {
    "label": ("run", ""),
    "round": ("rounds", "d"),
    "accuracy": ("accuracy", ".3f"),
    "best_accuracy": ("best", ".3f"),
    "uplink_mib": ("MiB a client", ".2f"),
    "sim_seconds": ("simulated s", ".2f"),
    "joules": ("J a client", ".3f"),
    "wall_seconds": ("wall s", ".1f"),
    "rounds_to_target": ("rounds to target", "d"),
    "mib_to_target": ("MiB to target", ".2f"),
    "seconds_to_target": ("seconds to target", ".2f"),
}


def closing_table(summaries: Sequence[dict[str, Any]]) -> Table:
    """One line a run; the target's columns where a target was set."""
    targets = {s["target"] for s in summaries if "target" in s}
    title = f"target: accuracy {targets.pop():g}" if len(targets) == 1 else None
    table = Table(title=title)
    columns = {key: c for key, c in COLUMNS.items() if any(key in s for s in summaries)}
    for key, (heading, _) in columns.items():
        table.add_column(heading, justify="left" if key == "label" else "right")
    for summary in summaries:
        cells = []
        for key, (_, form) in columns.items():
            value = summary.get(key)
            cells.append("not reached" if value is None else format(value, form))
        table.add_row(*cells)
    return table
