"""Many runs, each made once: kept on disk under the hash of its settings.

They run one after the other, in several local processes, or on a Ray cluster.
"""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import signal
import tarfile
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import torch

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.runs.directory import Row
from wirelessfl.runs.run import RunResult, resume, run

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
        said = "; ".join(
            f"{failure.config.algorithm['name']} ({settings_hash(failure.config)}, seed "
            f"{failure.config.run.seed}, cells {failure.config.network.cells}): {failure.reason}"
            for failure in failures
        )
        super().__init__(f"{len(failures)} of the runs failed, and the others are kept: {said}")


def settings_hash(config: Config) -> str:
    """What tells runs apart: all settings but where the data and the results are kept."""
    bare = config.model_copy(update={"run": config.run.model_copy(update={"out": None})})
    bare = bare.model_copy(update={"data": bare.data.model_copy(update={"data_dir": None})})
    return hashlib.sha256(bare.to_toml().encode()).hexdigest()[:16]


def kept_folder(config: Config, root: Path) -> Path:
    """Where the run of these settings is kept below ``root``."""
    return root / f"{config.algorithm['name'].replace(':', '.')}-{settings_hash(config)}"


def is_finished(config: Config, root: Path) -> bool:
    """Whether the run of these settings is kept below ``root``, to its end."""
    folder = kept_folder(config, root)
    try:
        return (folder / "checkpoint.safetensors").is_file() and bool(
            _state(folder).get("finished")
        )
    except ConfigError:
        return False


def _state(folder: Path) -> dict[str, Any]:
    from wirelessfl.runs.directory import RunDirectory

    checkpoint = RunDirectory(folder).load()
    return {} if checkpoint is None else checkpoint[1]


def kept_run(config: Config, root: Path, on_row: Callable[[Row], None] | None = None) -> RunResult:
    """The run of these settings: read from disk, gone on with, or made.

    Args:
        config: the settings; ``out`` counts for nothing.
        root: folder of all runs.
        on_row: called with each row as it is written.
    """
    folder = kept_folder(config, root)
    if (folder / "config.toml").is_file():
        return resume(folder, on_row=on_row)
    out = config.run.model_copy(update={"out": folder})
    return run(config.model_copy(update={"run": out}), on_row=on_row)


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
        ConfigError: ``jobs`` is below 1, or Ray is asked for and not there.
        SweepError: runs failed.
    """
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}: at least one process is needed.")
    tell = on_row or (lambda place, row: None)
    first: dict[str, int] = {}
    for place, config in enumerate(configs):
        first.setdefault(settings_hash(config), place)
    places = list(first.values())
    if ray is not None:
        failures = _on_ray(configs, places, root, ray, tell)
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
    failures = []
    for place in places:
        try:
            kept_run(configs[place], root, lambda row, place=place: tell(place, row))  # type: ignore[misc]
        except (ConfigError, DataError, TrainingError) as error:
            failures.append(Failure(configs[place], str(error)))
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
    torch.set_num_threads(1)
    reason = ""
    with suppress(OSError):  # the parent is gone: what is on disk can be taken up again
        try:
            kept_run(config, root, pipe.send)
        except (ConfigError, DataError, TrainingError) as error:
            reason = str(error)
        except OSError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        pipe.send(reason)


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


def _on_ray(
    configs: Sequence[Config], places: list[int], root: Path, address: str, tell: OnRow
) -> list[Failure]:
    """Runs as Ray tasks; their folders travel both ways, so no file system need be shared."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "ray is asked for and not installed: pip install 'wirelessfl[ray]'."
        ) from error
    failures = []
    with _cluster(ray, address):
        remote = ray.remote(max_retries=0, num_cpus=1)(_make_packed)
        tasks = {
            remote.remote(configs[place], _pack(kept_folder(configs[place], root))): place
            for place in places
        }
        while tasks:
            done, _ = ray.wait(list(tasks), num_returns=1)
            place = tasks.pop(done[0])
            folder = kept_folder(configs[place], root)
            try:
                rows, packed, reason = ray.get(done[0])
            except ray.exceptions.RayError as error:
                lines = str(error).strip().splitlines()
                failures.append(Failure(configs[place], lines[-1] if lines else repr(error)))
                continue
            if packed:
                _unpack(packed, folder)
            for row in rows:
                tell(place, row)
            if reason:
                failures.append(Failure(configs[place], reason))
    return failures


@contextmanager
def _cluster(ray: Any, address: str) -> Iterator[None]:
    """A connection to the cluster at ``address``, or one of our own."""
    if ray.is_initialized():  # the caller's
        yield
        return
    try:
        if address == "local":
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
        else:
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"ray is {address}, and no cluster answers there: {str(error).splitlines()[0]}"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _make_packed(config: Config, packed: bytes) -> tuple[list[Row], bytes, str]:
    """On a cluster: go on with the packed folder, or make the run; its rows, folder, failure."""
    torch.set_num_threads(1)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as root:
        folder, reason = kept_folder(config, Path(root)), ""
        if packed:
            _unpack(packed, folder)
        try:
            kept_run(config, Path(root), rows.append)
        except (ConfigError, DataError, TrainingError) as error:
            reason = str(error)
        return rows, _pack(folder), reason


def _pack(folder: Path) -> bytes:
    """A run's folder as bytes; none where there is no run."""
    if not (folder / "config.toml").is_file():
        return b""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder, arcname=".")
    return buffer.getvalue()


def _unpack(packed: bytes, folder: Path) -> None:
    """Put a packed folder in the place of ``folder``, whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(draft, filter="data")
        folder.mkdir(exist_ok=True)
        # The checkpoint last: it names how much of the rows it covers.
        for file in sorted(Path(draft).iterdir(), key=lambda f: f.suffix == ".safetensors"):
            file.replace(folder / file.name)
