"""The content of ``about.json``: versions, commit, date and device."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from channels.concurrency import ignored_warnings
from wirelessfl.version import version
from wirelessfl.wording import shown

ROWS_SCHEMA = 1
"""Version of the row format; incremented when a field is removed or its meaning changes."""
CHECKPOINT_LAYOUT = 8
"""Version of checkpoints and ``config.toml``; incremented when their entries are renamed or moved.
"""
NUMERICS = 1
"""Version of the results; incremented whenever the results of a run are changed on purpose.

Runs with equal ``numerics`` and resolved settings on the same machine have bit-identical rows in
all versions of the package. With different ``numerics``, any value may differ.
"""
NOTES = "notes"
"""Entry of ``about.json``: the notes on the run, if there are any."""
PACKAGE = Path(__file__).parents[1]
ENTRIES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("wirelessfl", "date", "device", "device_name"), (str,)),
    **dict.fromkeys(("python", "torch", "numpy"), (str,)),
    **dict.fromkeys(("settings", "priced_from"), (str,)),
    "commit": (str, type(None)),
    "dirty": (bool, type(None)),
    **dict.fromkeys(("rows_schema", "numerics"), (int,)),
    **dict.fromkeys(("data", "named", "given"), (dict,)),
    **dict.fromkeys(("step_costs", "resumed", "extended", NOTES), (list,)),
}
"""Entries of ``about.json`` and their types; others are ignored, and lost when it is written."""
EACH = {"data": str, "named": dict, "resumed": dict, "extended": dict, NOTES: str}
"""Types in entries that are lists or tables."""


def about(device: str) -> dict[str, Any]:
    """Versions, commit, date and device of a run that starts now.

    Args:
        device: torch's name of the training device.

    Returns:
        ``wirelessfl``, ``python``, ``torch`` and ``numpy``: versions; ``commit`` of the package and
        whether its files are ``dirty``, both None outside a git work tree; ``date`` in UTC, ISO
        8601; ``device`` and ``device_name``; ``rows_schema`` and ``numerics``.
    """
    return {
        "wirelessfl": version(),
        **commit(PACKAGE),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device,
        "device_name": _device_name(device),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "rows_schema": ROWS_SCHEMA,
        "numerics": NUMERICS,
    }


def checked_entries(told: Any) -> dict[str, Any]:
    """The known entries among those that were read from ``about.json``.

    Raises:
        ValueError: they are not those of a run.
    """
    if not isinstance(told, dict):
        raise ValueError("it has no entries of a run")
    entries = {name: value for name, value in told.items() if name in ENTRIES}
    for name, value in entries.items():
        each = value.values() if isinstance(value, dict) else value
        of = EACH.get(name)
        if not isinstance(value, ENTRIES[name]) or (
            of is not None and not all(isinstance(one, of) for one in each)
        ):
            raise ValueError(f"{name} is {shown(value)}, which is not an entry of a run")
    return entries


@cache
def commit(package: Path) -> dict[str, Any]:
    """The commit of a package, and whether files of the three packages differ from it.

    A work tree that ignores the package, e.g. one that contains the virtual environment, does not
    count.

    Args:
        package: folder of the package.

    Returns:
        ``commit`` and ``dirty``; None if unknown.
    """
    packages = ("channels", "solvers", package.name)
    found, changed = None, None
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is not None:
        found = _git(package, "rev-parse", "HEAD")
        changed = _git(package.parent, "status", "--porcelain", "--", *packages)
    return {"commit": found, "dirty": None if changed is None else bool(changed)}


def _git(folder: Path, *words: str) -> str | None:
    """Output of a git command; None if git fails or is not installed."""
    # In a git hook of another repository, variables would redirect git to that repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        with ignored_warnings(category=BytesWarning):  # as subprocess does, but not in turn
            done = subprocess.run(
                ["git", "-C", str(folder), *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _device_name(device: str) -> str:
    """Product name of the GPU or the processor."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    except (OSError, UnicodeDecodeError):
        pass  # not Linux
    return platform.processor() or platform.machine()
