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
from typing import Any
from urllib.parse import urlsplit

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.signals import ENDING
from wirelessfl.config import Config
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.kept import why_failed
from wirelessfl.training.workers.processes import (
    CHILD,
    UNGUARDED_CODE,
    check_guarded,
    end_with_parent,
    fork_server,
    safe_path,
    unguarded,
)


class _Child:
    """A process that executes one run, and the pipe that receives its rows.

    Args:
        config: settings of the run.
        place: index of the run.
        folder: its folder.
        source: folder of the trained run if this one is priced.
        slot: number of the process, from 0 to ``jobs`` - 1, which no other has at the same time.
    """

    def __init__(
        self, config: Config, place: int, folder: Path, source: Path | None, slot: int
    ) -> None:
        context = fork_server.context("wirelessfl.runs.kept")
        self.place, self.slot = place, slot
        self.pipe, theirs = context.Pipe(duplex=False)
        arguments = config, folder, source, theirs, dict(os.environ), slot
        self.process: BaseProcess = context.Process(target=_make_one, args=arguments, name=CHILD)
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
    slot: int,
) -> None:
    """Execute a run on one thread of a child process; send its rows, then the failure or ""."""
    os.environ.clear()
    os.environ.update(environment)  # the fork server may have an older one
    for number in ENDING:  # the parent ends this process by SIGTERM
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    end_with_parent()  # the stored run can be resumed
    torch.set_num_threads(1)
    if source is None:
        use_gpu(config, slot)
    pipe.send(why_failed(config, folder, pipe.send, source))


def use_gpu(config: Config, number: int) -> None:
    """Let a run use one of the GPUs that torch finds: that of its number, in turn.

    Args:
        config: settings of the run; a device with a number, such as ``cuda:1``, is used as it is.
        number: number of the process or run.
    """
    gpus = 0 if config.run.device == "cpu" else torch.cuda.device_count()
    if gpus > 1:
        torch.cuda.set_device(number % gpus)


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
    check_guarded("jobs=1")
    waiting, failures = deque(places), []
    children: dict[Any, _Child] = {}
    try:
        while waiting or children:
            while waiting and len(children) < jobs:
                place = waiting.popleft()
                slot = min({*range(jobs)} - {child.slot for child in children.values()})
                child = _Child(configs[place], place, folders[place], sources.get(place), slot)
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
