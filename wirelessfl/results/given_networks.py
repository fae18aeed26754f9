"""Networks that were given to runs: their numbers as settings, and whether they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.npz import read_npz
from channels.stored import SETTINGS
from wirelessfl.base.files import open_stored, reading
from wirelessfl.runs.folder.identity import digest
from wirelessfl.runs.folder.run_folder import NETWORK
from wirelessfl.runs.result import RunResult

NUMBERS = (
    "bandwidth_hz",
    "noise_figure_db",
    "antennas",
    "antenna_correlation",
    "fading.k_factor_db",
)
"""Values of a network that are settings of runs to which none is given."""
FOLLOWING = (*NUMBERS, "_noise_dbm")
"""Values that are settings, or follow from them."""
Values = dict[str, Any]


def settings_of(run: RunResult, task: str | None = None) -> Values:
    """The settings of a run with an effect, and numbers of the network that was given to it."""
    values = stored_values(run)
    numbers = {name: v for name, v in values.items() if name in NUMBERS and not isinstance(v, str)}
    named = {name.rpartition(".")[2]: value for name, value in numbers.items()}
    return {**run.settings_of(task), **named}


def network_hash(run: RunResult) -> str | None:
    """Hash of the network that was given to a run; None without one, or if it is not stored."""
    values = stored_values(run)
    return digest(sorted(values.items())) if values else None


def network_note(runs: Sequence[RunResult]) -> str:
    """In what the networks that were given to runs differ, or that it is unknown; else empty."""
    networks = [stored_values(run) for run in runs if _has_network(run)]
    if len(networks) > 1 and not all(networks):
        return "networks were given to its runs, and not all are stored, so they may differ"
    names = dict.fromkeys(name for values in networks for name in values if name not in FOLLOWING)
    differing = dict.fromkeys(
        "SNR" if name == "_snr_db" else name.partition(".")[0]
        for name in names
        if any(values.get(name) != networks[0].get(name) for values in networks)
    )
    return f"the networks given to its runs differ in {', '.join(differing)}" if differing else ""


def stored_values(run: RunResult) -> Values:
    """Values by name of the given network in a run's folder; of arrays, hashes or equal values."""
    file = run.directory / f"{NETWORK}.npz"
    if not _has_network(run):
        return {}
    try:
        stat = file.stat()
    except OSError:  # its fading is the user's own, or the folder has been deleted
        return {}
    return dict(_values(file, stat.st_mtime_ns, stat.st_size))


@lru_cache(maxsize=1024)
def _values(file: Path, changed: int, size: int) -> tuple[tuple[str, Any], ...]:
    with reading(file, "Restore it."), open_stored(file) as content:
        arrays = read_npz(content)
        settings = json.loads(str(arrays.pop(SETTINGS)))
    values = {key: _value(array) for key, array in arrays.items()}
    for name, value in settings.items():
        parts = value if isinstance(value, Mapping) else {"": value}
        values |= {f"{name}.{key}".removesuffix("."): part for key, part in parts.items()}
    return tuple(values.items())


def _value(array: NDArray[Any]) -> Any:
    if array.size and array.dtype.kind in "fiu" and (array == array.flat[0]).all():
        return array.flat[0].item()
    return digest(array.shape, np.ascontiguousarray(array))


def _has_network(run: RunResult) -> bool:
    if run.tables is None:
        return run.config.given.network is not None
    marks = run.tables.get("given")
    return isinstance(marks, Mapping) and marks.get("network") is not None
