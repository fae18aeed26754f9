"""Runs in local processes, each on one CPU thread."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.runs.directory import Row
from wirelessfl.runs.kept import why_failed
from wirelessfl.signals import ENDING
from wirelessfl.training.workers.fork_server import (
    CHILD,
    UNGUARDED_CODE,
    fork_server,
    safe_path,
    unguarded,
)
from wirelessfl.training.workers.processes import end_with_parent


class _Child:
    """A process that executes one run, and the pipe that receives its rows."""

    def __init__(self, config: Config, place: int, folder: Path, source: Path | None) -> None:
        context = fork_server.context("wirelessfl.runs.kept")
        self.place = place
        self.pipe, theirs = context.Pipe(duplex=False)
        given = config, folder, source, theirs, dict(os.environ)
        self.process: BaseProcess = context.Process(target=_make_one, args=given, name=CHILD)
        with safe_path():
            self.process.start()
        theirs.close()

    def end(self) -> None:
        """Wait until the process has written a checkpoint of its run, and ended."""
        while self.process.is_alive():
            self.process.terminate()  # again, since it ignores signals at its very start
            self.process.join(1.0)
            with suppress(EOFError, OSError):
                while self.pipe.poll():  # unread rows would block it
                    self.pipe.recv()
        self.pipe.close()


def _make_one(
    config: Config,
    folder: Path,
    source: Path | None,
    pipe: Connection,
    environment: dict[str, str],
) -> None:
    """Execute a run on one thread of a child process; send its rows, then the failure or ""."""
    os.environ.clear()
    os.environ.update(environment)  # the fork server may have an older one
    for number in ENDING:  # the parent ends this process by SIGTERM
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    end_with_parent()  # the stored run can be resumed
    torch.set_num_threads(1)
    pipe.send(why_failed(config, folder, pipe.send, source))


def in_processes(
    configs: Sequence[Config],
    places: list[int],
    folders: Sequence[Path],
    jobs: int,
    tell: Callable[[int, Row], None],
    ended: Callable[[int], None],
    sources: Mapping[int, Path],
) -> list[tuple[Config, str]]:
    """Execute the runs with indices ``places``; return the failed runs with the reasons.

    Args:
        configs: settings of all runs.
        places: indices of the runs to execute.
        folders: folder of each run.
        jobs: number of processes.
        tell: called with the index of a run and each of its rows.
        ended: called with the index of each finished run.
        sources: by run to price, the folder of the trained run.

    Raises:
        ConfigError: the processes import a script that starts the sweep.
    """
    waiting, failures = deque(places), []
    children: dict[Any, _Child] = {}
    try:
        while waiting or children:
            while waiting and len(children) < jobs:
                place = waiting.popleft()
                child = _Child(configs[place], place, folders[place], sources.get(place))
                children[child.pipe] = child
            for pipe in wait(list(children)):
                child = children[pipe]
                try:
                    message = child.pipe.recv()
                except EOFError:
                    child.process.join()
                    if child.process.exitcode == UNGUARDED_CODE:
                        raise ConfigError(unguarded("jobs=1")) from None
                    message = f"its process ended with exit code {child.process.exitcode}"
                if isinstance(message, dict):
                    tell(child.place, message)
                    continue
                del children[pipe]
                child.process.join()
                child.pipe.close()
                if message:
                    failures.append((configs[child.place], message))
                else:
                    ended(child.place)
    except BaseException:
        _end(list(children.values()))
        raise
    return failures


def _end(children: Sequence[_Child]) -> None:
    """End processes, each with a checkpoint of its run; at once at a second Ctrl-C."""
    try:
        for child in children:
            child.process.terminate()
        for child in children:
            child.end()
    except KeyboardInterrupt:
        for child in children:
            child.process.kill()
        raise
