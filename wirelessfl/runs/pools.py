"""Pools that execute runs: local processes on one CPU thread each, or a Ray cluster.

On machines with several GPUs, concurrent runs take the GPUs in turn.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import tarfile
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.signals import ENDING
from wirelessfl.config import Config
from wirelessfl.runs.build.samples import data_kept
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.kept import why_failed
from wirelessfl.training.workers.processes import (
    CHILD,
    OF_RUNS,
    UNGUARDED_CODE,
    check_guarded,
    end_with_parent,
    fork_server,
    start,
    unguarded,
)

ONE = "jobs=1"
"""The setting that needs no processes."""


class _Worker:
    """A process that executes runs in turn, and the pipe of their settings and rows.

    Args:
        slot: its number, from 0 to ``jobs`` - 1, which no other process has at the same time.
    """

    def __init__(self, slot: int) -> None:
        context = fork_server.context(*OF_RUNS)
        self.slot, self.busy = slot, False
        self.places: list[int] = []
        """Indices of its runs."""
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, slot), name=CHILD)
        start(self.process, ONE)
        theirs.close()

    def begin(self, place: int, config: Config, folder: Path, source: Path | None) -> None:
        """Execute the run with this index, see ``why_failed``."""
        self.places.append(place)
        self.busy = True
        with suppress(OSError):  # the process has ended, which the end of the pipe says
            self.pipe.send((config, folder, source, dict(os.environ)))

    def reply(self) -> Row | str | None:
        """The next row of its run, then the failure or ""; None if the process has ended."""
        try:
            message: Row | str = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return None
        self.busy = isinstance(message, dict)
        return message

    def close(self) -> None:
        """End the process, which is idle or has ended."""
        self.pipe.close()
        self.process.join()

    def end(self) -> None:
        """Wait until the process has written a checkpoint of its run, and ended."""
        while self.process.is_alive():
            self.process.terminate()  # again, since it ignores signals at its very start
            self.process.join(1.0)
            with suppress(EOFError, OSError):
                while self.pipe.poll():  # unread rows would block it
                    self.pipe.recv()
        self.pipe.close()


def _serve(pipe: Connection, slot: int) -> None:
    """Execute runs on one thread of a child process until the parent closes the pipe."""
    for number in ENDING:  # the parent ends this process by SIGTERM
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    end_with_parent()  # the stored runs can be resumed
    torch.set_num_threads(1)
    with data_kept:
        while True:
            try:
                config, folder, source, environment = pipe.recv()
            except EOFError:
                return
            os.environ.clear()
            os.environ.update(environment)  # the fork server may have an older one
            torch.set_default_dtype(torch.float32)  # an earlier run's own code may have set others
            torch.set_default_device(None)
            if source is None:
                use_gpu(config, slot)
            reason = why_failed(config, folder, pipe.send, source)
            if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                torch.cuda.empty_cache()  # for the runs of other processes
            pipe.send(reason)


def use_gpu(config: Config, number: int) -> None:
    """Let a run use one of the GPUs that torch finds: that of its number, in turn.

    Args:
        config: settings of the run; a device with a number, such as ``cuda:1``, is used as it is.
        number: number of the process or run.
    """
    gpus = 0 if config.run.device == "cpu" else torch.cuda.device_count()
    if gpus > 1:
        torch.cuda.set_device(number % gpus)


class Processes:
    """Local processes for the runs of a sweep; each executes one run after the other.

    If a run ends its process, another process takes its place.

    Args:
        configs: settings of all runs.
        folders: folder of each run.
        jobs: number of processes.
        tell: called with the index of a run and each of its rows.
        ended: called with the index of each finished run.

    Raises:
        ConfigError: the processes import a script that starts the sweep.
    """

    def __init__(
        self,
        configs: Sequence[Config],
        folders: Sequence[Path],
        jobs: int,
        tell: Callable[[int, Row], None],
        ended: Callable[[int], None],
    ) -> None:
        check_guarded(ONE)
        self.configs, self.folders, self.jobs = configs, folders, jobs
        self.tell, self.ended = tell, ended
        self.workers: dict[int, _Worker] = {}
        """By slot."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the processes; after an error each with a checkpoint of its run."""
        if kind is not None:
            _end([*self.workers.values()])
            return
        for worker in self.workers.values():
            worker.close()

    def execute(
        self, places: Sequence[int], sources: Mapping[int, Path]
    ) -> list[tuple[Config, str]]:
        """Execute the runs with indices ``places``; return the failed runs with the reasons.

        Args:
            places: indices of the runs to execute.
            sources: by run to price, the folder of the trained run.

        Raises:
            ConfigError: the processes import a script that starts the sweep.
        """
        waiting, failures = deque(places), list[tuple[Config, str]]()
        while True:
            for slot in range(self.jobs):
                if waiting and not (slot in self.workers and self.workers[slot].busy):
                    if slot not in self.workers:
                        self.workers[slot] = _Worker(slot)
                    place = waiting.popleft()
                    run = self.configs[place], self.folders[place], sources.get(place)
                    self.workers[slot].begin(place, *run)
            busy = {worker.pipe: worker for worker in self.workers.values() if worker.busy}
            if not busy:
                return failures
            for pipe in wait([*busy]):
                worker = busy[cast(Connection, pipe)]
                place, message = worker.places[-1], worker.reply()
                if message is None:
                    del self.workers[worker.slot]
                    worker.close()
                    code = worker.process.exitcode
                    if code == UNGUARDED_CODE:
                        raise ConfigError(unguarded(ONE))
                    if len(worker.places) > 1:  # perhaps an earlier run has caused it
                        waiting.appendleft(place)
                        continue
                    message = f"its process ended with exit code {code}"
                if isinstance(message, dict):
                    self.tell(place, message)
                elif message:
                    failures.append((self.configs[place], message))
                else:
                    self.ended(place)


def _end(workers: Sequence[_Worker]) -> None:
    """End processes, each with a checkpoint of its run; at once at a second Ctrl-C."""
    try:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()
    except KeyboardInterrupt:
        for worker in workers:
            worker.process.kill()
        raise


def on_ray(
    configs: Sequence[Config],
    places: Sequence[int],
    folders: Sequence[Path],
    address: str,
    tell: Callable[[int, Row], None],
    ended: Callable[[int], None],
) -> list[tuple[Config, str]]:
    """Execute the runs with indices ``places``; return the failed runs with the reasons.

    Args:
        configs: settings of all runs.
        places: indices of the runs to execute.
        folders: folder of each run.
        address: address of the cluster, or ``local`` to start one on this machine.
        tell: called with the index of a run and each of its rows.
        ended: called with the index of each finished run.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers.
    """
    try:
        import ray.exceptions
    except ImportError as error:
        raise ConfigError("ray is not installed: run pip install 'wirelessfl[ray]'.") from error
    failures = []
    with _cluster(ray, address):
        remote = ray.remote(max_retries=0, num_cpus=1)(_make_packed)
        tasks = {
            remote.remote(configs[place], folders[place].name, _pack(folders[place]), place): place
            for place in places
        }
        while tasks:
            done, _ = ray.wait(list(tasks), num_returns=1)
            place = tasks.pop(done[0])
            folder = folders[place]
            try:
                rows, packed, reason = ray.get(done[0])
            except ray.exceptions.RayError as error:
                lines = str(error).strip().splitlines()
                failures.append((configs[place], lines[-1] if lines else repr(error)))
                continue
            if packed:
                _unpack(packed, folder)
            for row in rows:
                tell(place, row)
            if reason:
                failures.append((configs[place], reason))
            else:
                ended(place)
    return failures


@contextmanager
def _cluster(ray: Any, address: str) -> Iterator[None]:
    """Connect to the cluster at ``address``, or start a local one."""
    if ray.is_initialized():  # use the caller's connection
        yield
        return
    try:
        place = urlsplit(address if "//" in address else f"ray://{address}")
        if place.hostname is not None and place.port is not None:
            # Ray itself would retry for minutes.
            socket.create_connection((place.hostname, place.port), timeout=5.0).close()
        if address == "local":
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
        else:
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"ray is {address}: no cluster answers there ({str(error).splitlines()[0]}). Start the "
            "cluster, or give another address."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _make_packed(
    config: Config, name: str, packed: bytes, place: int
) -> tuple[list[Row], bytes, str]:
    """Execute or resume a run on the cluster; return rows, packed folder, and failure or ""."""
    torch.set_num_threads(1)
    use_gpu(config, place)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, name)
        if packed:
            _unpack(packed, folder)
        reason = why_failed(config, folder, rows.append)
        return rows, _pack(folder), reason


def _pack(folder: Path) -> bytes:
    if not (folder / "config.toml").is_file():
        return b""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder, arcname=".")
    return buffer.getvalue()


def _unpack(packed: bytes, folder: Path) -> None:
    """Unpack a run's folder into ``folder``; each file is replaced atomically."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            # Python before 3.11.4 has no filters.
            if hasattr(tarfile, "data_filter"):
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(draft)
        folder.mkdir(exist_ok=True)
        # The checkpoint comes last, because it refers to the rows.
        for file in sorted(Path(draft).iterdir(), key=lambda f: f.suffix == ".safetensors"):
            file.replace(folder / file.name)
