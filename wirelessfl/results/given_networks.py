"""Networks that were given to runs: their numbers as settings, and whether they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirelessfl.runs.folder.given_files import network_values
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
    return dict(network_values(file, stat.st_mtime_ns, stat.st_size))


def _has_network(run: RunResult) -> bool:
    if run.tables is None:
        return run.config.given.network is not None
    marks = run.tables.get("given")
    return isinstance(marks, Mapping) and marks.get("network") is not None
