"""Runs as tasks of a Ray cluster; their folders travel, so no file system need be shared."""

from __future__ import annotations

import io
import socket
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.runs.directory import Row
from wirelessfl.runs.kept import kept_folder, why_failed


def on_ray(
    configs: Sequence[Config],
    places: Sequence[int],
    root: Path,
    address: str,
    tell: Callable[[int, Row], None],
) -> list[tuple[Config, str]]:
    """Make the runs of ``configs`` at ``places``; failed ones with the reason.

    Args:
        configs: settings.
        places: which of them.
        root: folder of all runs.
        address: of the cluster, or ``local`` to start one here.
        tell: called with a run's place and each of its rows.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigError("ray is not installed: pip install 'wirelessfl[ray]'.") from error
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
                failures.append((configs[place], lines[-1] if lines else repr(error)))
                continue
            if packed:
                _unpack(packed, folder)
            for row in rows:
                tell(place, row)
            if reason:
                failures.append((configs[place], reason))
    return failures


@contextmanager
def _cluster(ray: Any, address: str) -> Iterator[None]:
    """A connection to the cluster at ``address``, or one of our own."""
    if ray.is_initialized():  # the caller's
        yield
        return
    try:
        place = urlsplit(address if "//" in address else f"ray://{address}")
        if place.hostname is not None and place.port is not None:
            # Ray itself would try for minutes.
            socket.create_connection((place.hostname, place.port), timeout=5.0).close()
        if address == "local":
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
        else:
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"ray is {address}, and no cluster answers there: {str(error).splitlines()[0]}"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _make_packed(config: Config, packed: bytes) -> tuple[list[Row], bytes, str]:
    """On a cluster: resume the packed folder, or make the run; its rows, folder, failure."""
    torch.set_num_threads(1)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as root:
        folder = kept_folder(config, Path(root))
        if packed:
            _unpack(packed, folder)
        reason = why_failed(config, Path(root), rows.append)
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
