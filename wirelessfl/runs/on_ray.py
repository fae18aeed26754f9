"""Runs on a Ray cluster; their folders are sent as data, so no shared file system is needed."""

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
from wirelessfl.runs.kept import why_failed


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
            remote.remote(configs[place], folders[place].name, _pack(folders[place])): place
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


def _make_packed(config: Config, name: str, packed: bytes) -> tuple[list[Row], bytes, str]:
    """Execute or resume a run on the cluster; return rows, packed folder, and failure or ""."""
    torch.set_num_threads(1)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, name)
        if packed:
            _unpack(packed, folder)
        reason = why_failed(config, folder, rows.append)
        return rows, _pack(folder), reason


def _pack(folder: Path) -> bytes:
    """Pack a run's folder into bytes; empty if there is no run."""
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
