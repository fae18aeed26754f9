"""The command line of the gate: store, then check."""

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

from tests.gate.comparing import first_difference
from tests.gate.configurations import CONFIGURATIONS
from tests.gate.running import Outcome, run
from tests.gate.storing import (
    Origin,
    Stored,
    default_folder,
    numerics,
    present_origin,
    read,
    read_outcome,
    settings_of,
    write,
)


class MeaninglessError(Exception):
    """A comparison that cannot be made; the message says why, and what to do."""


@dataclass(frozen=True)
class Verdict:
    """What became of a configuration.

    Args:
        name: of the configuration.
        finding: what differs, or failed; None: nothing.
        rows: that it gives now; None: it was not run, or gave none.
    """

    name: str
    finding: str | None
    rows: list[dict[str, Any]] | None = None


Task = Callable[[str], Verdict]


@dataclass(frozen=True)
class Storing:
    """Runs a configuration and stores what it gives."""

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
    """Runs a configuration and compares what it gives with the store."""

    folder: Path

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
        return Verdict(name, first_difference(before, outcome) or finding, outcome.rows)


def _ran(name: str) -> tuple[Outcome | None, str | None]:
    """The outcome of a configuration, and what is wrong with it."""
    try:
        first, *others = run(CONFIGURATIONS[name])
    except Exception as error:  # whatever it is: the others go on
        said = str(error).splitlines() or [""]
        return None, f"failed: {type(error).__name__}: {said[0]}"
    for resumed in others:
        finding = first_difference(first, resumed, ("uninterrupted", "resumed"))
        if finding is not None:
            return first, finding
    return first, None


def store(folder: Path, names: Sequence[str], jobs: int, console: Console) -> int:
    """Run and store; the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    origin = present_origin()
    failed = 0
    for verdict in _verdicts(Storing(folder, origin), names, jobs, console):
        failed += _told(verdict, console)
    kept = len(names) - failed
    _say(console, f"{kept} of {len(names)} stored in {folder}, at commit {origin.commit}")
    return 1 if failed else 0


def check(folder: Path, names: Sequence[str], jobs: int, console: Console) -> int:
    """Run and compare; the exit status.

    Raises:
        MeaninglessError: nothing is stored, or it was stored under other circumstances.
    """
    found = {name: read(folder, name) for name in names}
    stored = {name: own for name, own in found.items() if own is not None}
    if not stored:
        raise MeaninglessError(f"nothing is stored in {folder}: run `make gate-store` first")
    now = present_origin()
    for own in stored.values():
        if reason := own.origin.why_not(now):
            raise MeaninglessError(
                f"{reason}: a comparison to the bit would be meaningless. Store again."
            )
    different = 0
    for verdict in _verdicts(Checking(folder), names, jobs, console):
        _check_numerics(stored.get(verdict.name), verdict)
        different += _told(verdict, console)
    equal = len(names) - different
    commits = " and ".join(dict.fromkeys(own.origin.commit for own in stored.values()))
    _say(console, f"{equal} of {len(names)} equal (stored at commit {commits})")
    return 1 if different else 0


def _check_numerics(stored: Stored | None, verdict: Verdict) -> None:
    """Refuse to compare rows of an arithmetic that is meant to be another one.

    Raises:
        MeaninglessError: it is.
    """
    if stored is None or verdict.rows is None:
        return
    before, now = numerics(stored.rows), numerics(verdict.rows)
    if before != now:
        words = ["none" if own is None else own for own in (before, now)]
        raise MeaninglessError(f"numerics {words[0]} stored, {words[1]} now: store again")


def _told(verdict: Verdict, console: Console) -> bool:
    """Say what is wrong, in a line; whether something is."""
    if verdict.finding is not None:
        _say(console, f"{verdict.name}: {verdict.finding}")
    return verdict.finding is not None


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _verdicts(task: Task, names: Sequence[str], jobs: int, console: Console) -> Iterator[Verdict]:
    """Those of all configurations, as they come."""
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
    """A bar on a terminal; nothing elsewhere."""
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
    """Read the command line and store or check; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gate",
        description="Many small runs, whose results are stored before a change that must not "
        "alter them, and compared to the bit after it.",
    )
    parser.add_argument("command", choices=["store", "check"])
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="the store (default: $WIRELESSFL_GATE, or a cache)"
    )
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="configurations whose names have this in them"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (1)")
    parsed = parser.parse_args(words)
    names = [name for name in CONFIGURATIONS if fnmatchcase(name, f"*{parsed.only}*")]
    if not names:
        parser.error(f"--only is {parsed.only!r}, which no configuration has in its name")
    if parsed.jobs < 1:
        parser.error(f"--jobs is {parsed.jobs}: at least one process is needed")
    folder = (parsed.into or default_folder()).absolute()
    start = time.monotonic()
    console = Console()
    try:
        status = (store if parsed.command == "store" else check)(
            folder, names, parsed.jobs, console
        )
    except MeaninglessError as error:
        print(error, file=sys.stderr)
        return 2
    if console.is_terminal:
        _say(console, f"{time.monotonic() - start:.0f} s")
    return status
