"""Many runs, each made once: kept on disk under the hash of its settings.

They run one after the other, in several local processes, or on a Ray cluster.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import torch

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError, TrainingError
from wirelessfl.processes import end_with_parent, launched
from wirelessfl.runs.directory import Row, check_writable
from wirelessfl.runs.kept import kept_folder, settings_hash, why_failed
from wirelessfl.runs.on_ray import on_ray
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume

OnRow = Callable[[int, Row], None]
"""Called with the place of a run in the list and each row it writes."""


class Failure(NamedTuple):
    """A run that did not come to its end.

    Args:
        config: its settings.
        reason: what went wrong, in a line.
    """

    config: Config
    reason: str


class SweepError(TrainingError):
    """Some runs of a sweep failed; the others are done, and kept.

    Args:
        failures: the runs, with the reason of each.
    """

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = tuple(failures)
        by_reason: dict[str, list[str]] = {}
        for config, reason in failures:
            by_reason.setdefault(reason, []).append(
                f"{config.algorithm['name']} ({settings_hash(config)}, seed {config.run.seed}, "
                f"cells {config.network.cells})"
            )
        said = "; ".join(f"{', '.join(runs)}: {reason}" for reason, runs in by_reason.items())
        super().__init__(f"{len(failures)} of the runs failed, and the others are kept: {said}")


def sweep(
    configs: Sequence[Config],
    root: Path,
    *,
    jobs: int = 1,
    ray: str | None = None,
    on_row: OnRow | None = None,
) -> list[RunResult]:
    """The runs of ``configs``, each read from ``root``, gone on with, or made there.

    Equal settings are run once. One that fails does not keep the others from their end.

    Args:
        configs: settings of each.
        root: folder of all runs.
        jobs: local processes; with more than one, each run takes one CPU thread.
        ray: address of a Ray cluster, or ``local`` to start one here; then ``jobs`` says nothing.
        on_row: called as rows come in.

    Returns:
        In the order of ``configs``.

    Raises:
        ConfigError: ``jobs`` is below 1, ``root`` cannot be written, Ray is asked for and not
            there, or ``torchrun`` has started several processes.
        SweepError: runs failed.
    """
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}: at least one process is needed.")
    if launched()[1] > 1:
        raise ConfigError(
            "torchrun shares the clients of one run between processes, and a sweep is many runs: "
            "give it jobs, or ray, instead."
        )
    check_writable(root)
    tell = on_row or (lambda place, row: None)
    first: dict[str, int] = {}
    for place, config in enumerate(configs):
        first.setdefault(settings_hash(config), place)
    places = list(first.values())
    if ray is not None:
        failures = [Failure(*failed) for failed in on_ray(configs, places, root, ray, tell)]
    elif jobs > 1:
        failures = _in_processes(configs, places, root, jobs, tell)
    else:
        failures = _in_turn(configs, places, root, tell)
    if failures:
        raise SweepError(failures)
    return [resume(kept_folder(config, root)) for config in configs]


def _in_turn(
    configs: Sequence[Config], places: list[int], root: Path, tell: OnRow
) -> list[Failure]:
    failures, mistakes = [], []

    def on_row(place: int, row: Row) -> None:
        try:
            tell(place, row)
        except Exception as error:  # the caller's, not the run's
            mistakes.append(error)
            raise

    for place in places:
        reason = why_failed(configs[place], root, partial(on_row, place))
        if mistakes:
            raise mistakes[0]
        if reason:
            failures.append(Failure(configs[place], reason))
    return failures


class _Child:
    """A process that makes one run, and the end of the pipe from which its rows come."""

    def __init__(self, config: Config, place: int, root: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.place = place
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process: BaseProcess = context.Process(target=_make_one, args=(config, root, theirs))
        self.process.start()
        theirs.close()

    def end(self) -> None:
        """Stop it, if it is at work; what it has done can be taken up again."""
        if self.process.is_alive():
            self.process.terminate()
        self.process.join()
        self.pipe.close()


def _make_one(config: Config, root: Path, pipe: Connection) -> None:
    """In a child: one run on one thread; rows, then the reason of a failure or an empty text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    end_with_parent()  # what is on disk can be taken up again
    torch.set_num_threads(1)
    pipe.send(why_failed(config, root, pipe.send))


def _in_processes(
    configs: Sequence[Config], places: list[int], root: Path, jobs: int, tell: OnRow
) -> list[Failure]:
    waiting, failures = deque(places), []
    children: dict[Any, _Child] = {}
    try:
        while waiting or children:
            while waiting and len(children) < jobs:
                place = waiting.popleft()
                child = _Child(configs[place], place, root)
                children[child.pipe] = child
            for pipe in wait(list(children)):
                child = children[pipe]
                try:
                    message = child.pipe.recv()
                except EOFError:
                    child.process.join()
                    message = f"its process ended with exit code {child.process.exitcode}"
                if isinstance(message, dict):
                    tell(child.place, message)
                    continue
                if message:
                    failures.append(Failure(configs[child.place], message))
                del children[pipe]
                child.process.join()
                child.pipe.close()
    finally:
        for child in children.values():
            child.end()
    return failures
