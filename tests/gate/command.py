"""The gate's command line: ``store`` and ``check``."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tests.gate.comparing import EXACT, Leeway, first_difference
from tests.gate.configurations import CONFIGURATIONS
from tests.gate.running import Outcome, run
from tests.gate.storing import (
    Origin,
    Stored,
    current_origin,
    default_folder,
    numerics,
    read,
    read_outcome,
    settings_of,
    write,
)


class IncomparableError(Exception):
    """Raised if results cannot be compared; the message gives the reason and a remedy."""


@dataclass(frozen=True)
class Verdict:
    """Result of a configuration.

    Args:
        name: name of the configuration.
        finding: failure or difference; None if there is none.
        rows: rows of the run; None if it was not run or failed.
    """

    name: str
    finding: str | None
    rows: list[dict[str, Any]] | None = None


Task = Callable[[str], Verdict]


@dataclass(frozen=True)
class Storing:
    """Runs a configuration and stores its results."""

    folder: Path
    origin: Origin

    def __call__(self, name: str) -> Verdict:
        outcome, finding = _ran(name)
        if outcome is None or finding is not None:
            return Verdict(name, finding)
        write(self.folder, name, self.origin, CONFIGURATIONS[name], outcome)
        return Verdict(name, None, outcome.rows)


@dataclass(frozen=True)
class Checking:
    """Runs a configuration and compares its results with the store."""

    folder: Path
    leeway: Leeway = EXACT

    def __call__(self, name: str) -> Verdict:
        stored = read(self.folder, name)
        if stored is None:
            return Verdict(name, "not stored: store it first")
        if stored.settings != settings_of(CONFIGURATIONS[name]):
            return Verdict(name, "stored with other settings: store it again")
        outcome, finding = _ran(name)
        if outcome is None:
            return Verdict(name, finding)
        before = read_outcome(self.folder, name, stored)
        return Verdict(
            name, first_difference(before, outcome, leeway=self.leeway) or finding, outcome.rows
        )


def _ran(name: str) -> tuple[Outcome | None, str | None]:
    """Run a configuration; returns the outcome, and the failure or difference after resuming."""
    try:
        first, *others = run(CONFIGURATIONS[name])
    except Exception as error:  # the other configurations continue
        lines = str(error).splitlines() or [""]
        return None, f"failed: {type(error).__name__}: {lines[0]}"
    for resumed in others:
        finding = first_difference(first, resumed, ("uninterrupted", "resumed"))
        if finding is not None:
            return first, finding
    return first, None


def store(folder: Path, names: Sequence[str], jobs: int, console: Console) -> int:
    """Run configurations and store their results; returns the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    origin = current_origin()
    failed = 0
    for verdict in _verdicts(Storing(folder, origin), names, jobs, console):
        failed += _report(verdict, console)
    kept = len(names) - failed
    _print(console, f"{kept} of {len(names)} stored in {folder}, at commit {origin.commit}")
    return 1 if failed else 0


def check(
    folder: Path, names: Sequence[str], jobs: int, console: Console, leeway: Leeway = EXACT
) -> int:
    """Run configurations and compare their results with the store; returns the exit status.

    Raises:
        IncomparableError: nothing is stored, or it was stored on another machine or version.
    """
    found = {name: read(folder, name) for name in names}
    stored = {name: results for name, results in found.items() if results is not None}
    if not stored:
        raise IncomparableError(f"nothing is stored in {folder}: run `make gate-store` first")
    now = current_origin()
    for results in stored.values():
        if reason := results.origin.mismatch(now):
            raise IncomparableError(
                f"{reason}: results cannot be compared bit for bit. Store them again."
            )
    different = 0
    for verdict in _verdicts(Checking(folder, leeway), names, jobs, console):
        _check_numerics(stored.get(verdict.name), verdict)
        different += _report(verdict, console)
    equal = len(names) - different
    commits = " and ".join(dict.fromkeys(results.origin.commit for results in stored.values()))
    _print(console, f"{equal} of {len(names)} equal (stored at commit {commits})")
    return 1 if different else 0


def _check_numerics(stored: Stored | None, verdict: Verdict) -> None:
    """Raise unless both outcomes have the same value of ``numerics`` in their rows.

    Raises:
        IncomparableError: the values differ.
    """
    if stored is None or verdict.rows is None:
        return
    before, now = numerics(stored.rows), numerics(verdict.rows)
    if before != now:
        words = ["none" if value is None else value for value in (before, now)]
        raise IncomparableError(f"numerics {words[0]} stored, {words[1]} now: store again")


def _report(verdict: Verdict, console: Console) -> bool:
    """Print a verdict's finding, if there is one, in one line; returns whether there is one."""
    if verdict.finding is not None:
        _print(console, f"{verdict.name}: {verdict.finding}")
    return verdict.finding is not None


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _verdicts(task: Task, names: Sequence[str], jobs: int, console: Console) -> Iterator[Verdict]:
    """The verdicts of all configurations, in order of completion."""
    with _progress(len(names), console) as show:
        if jobs == 1:
            for name in names:
                show(name)
                yield task(name)
            return
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
            futures = [pool.submit(task, name) for name in names]
            try:
                for done in as_completed(futures):
                    show(done.result().name)
                    yield done.result()
            finally:
                pool.shutdown(cancel_futures=True)


@contextmanager
def _progress(total: int, console: Console) -> Iterator[Callable[[str], None]]:
    """A progress bar on a terminal; otherwise nothing."""
    bar = Progress(
        BarColumn(),
        TextColumn("{task.completed} of {task.total}  {task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        line = bar.add_task("", total=total, completed=-1)
        yield lambda name: bar.update(line, description=name, advance=1)


def main(words: Sequence[str] | None = None) -> int:
    """Parse the command line, and store or check; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gate",
        description="Store the results of many small runs before a change, and check that they "
        "are bit-identical after it.",
    )
    parser.add_argument("command", choices=["store", "check"])
    parser.add_argument(
        "--into",
        type=Path,
        metavar="DIR",
        help="folder of stored results (default: $WIRELESSFL_GATE, or a cache)",
    )
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="configurations whose names contain PATTERN"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of processes (1)")
    parser.add_argument(
        "--rounding",
        type=float,
        default=0.0,
        metavar="R",
        help="relative difference allowed in simulated seconds and joules (0)",
    )
    parser.add_argument(
        "--but-for",
        action="append",
        default=[],
        metavar="FIELD",
        help="field of rows that is not compared; may be repeated",
    )
    parsed = parser.parse_args(words)
    names = [name for name in CONFIGURATIONS if fnmatchcase(name, f"*{parsed.only}*")]
    if not names:
        parser.error(f"--only is {parsed.only!r}: no configuration has a name that contains it")
    if parsed.jobs < 1:
        parser.error(f"--jobs is {parsed.jobs}: give a number >= 1")
    folder = (parsed.into or default_folder()).absolute()
    start = time.monotonic()
    console = Console()
    try:
        if parsed.command == "store":
            status = store(folder, names, parsed.jobs, console)
        else:
            leeway = Leeway(parsed.rounding, frozenset(parsed.but_for))
            status = check(folder, names, parsed.jobs, console, leeway)
    except IncomparableError as error:
        print(error, file=sys.stderr)
        return 2
    if console.is_terminal:
        _print(console, f"{time.monotonic() - start:.0f} s")
    return status
