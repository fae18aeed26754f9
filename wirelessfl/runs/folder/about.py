"""The file ``about.json`` of a run: versions, commit, date, device, notes and hashes."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from channels.concurrency import ignored_warnings
from channels.notes import of_each_kind
from wirelessfl.base.files import TEXT_BYTES, read_stored, reading, replacing
from wirelessfl.base.packages import version
from wirelessfl.base.wording import shown

ROWS_SCHEMA = 1
"""Version of the row format; incremented when a field is removed or its meaning changes."""
CHECKPOINT_LAYOUT = 9
"""Version of checkpoints and ``config.toml``; incremented when their entries are renamed or moved.
"""
NUMERICS = 1
"""Version of the results; incremented whenever the results of a run are changed on purpose.

Runs with equal ``numerics`` and resolved settings on the same machine have bit-identical rows in
all versions of the package. With different ``numerics``, any value may differ.
"""
NOTES = "notes"
"""Entry of ``about.json``: the notes on the run, if there are any."""
PACKAGE = Path(__file__).parents[2]
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
CHECKSUM = "checksum"
"""Entry that has the checksum of the others."""
NUMBER, TEXT = (int, float), (str, type(None))
STATE: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("schedule", "handler", "fingerprint", "extends"), (dict,)),
    **dict.fromkeys(("learners", "reached"), (list,)),
    **dict.fromkeys(("tasks", "client_log"), (list, type(None))),
    **dict.fromkeys(("sim_seconds", "wall_seconds"), NUMBER),
    "ended": TEXT,
    "finished": (bool,),
    **dict.fromkeys(("numerics", "rows_bytes", "rows_checksum"), (int,)),
}
"""Entries of the states of checkpoints and their types."""
EXTENDS = {"began": dict, "text": str, "entry": dict}
"""Entries of an extension, see ``RunFolder.extend``, and their types."""


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


def checked_entries(content: Any) -> dict[str, Any]:
    """The known entries among those that were read from ``about.json``.

    Raises:
        ValueError: they are not those of a run.
    """
    if not isinstance(content, dict):
        raise ValueError("it has no entries of a run")
    entries = {name: value for name, value in content.items() if name in ENTRIES}
    for name, value in entries.items():
        items = value.values() if isinstance(value, dict) else value
        of = EACH.get(name)
        if not isinstance(value, ENTRIES[name]) or (
            of is not None and not all(isinstance(one, of) for one in items)
        ):
            raise ValueError(f"{name} is {shown(value)}, which is not an entry of a run")
    return entries


def checked_state(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a checkpoint, if it can be one of this layout.

    Raises:
        ValueError: it cannot.
    """
    if not isinstance(state.get("layout", 1), int):
        raise ValueError(f"layout is {shown(state['layout'])}")
    if state.get("layout") != CHECKPOINT_LAYOUT:
        return state  # refused by ``check_version``
    for name, kinds in STATE.items():
        value = state.get(name, kinds)
        if value is kinds:
            continue
        large = isinstance(value, int | float) and not abs(value) < 1 << 63
        if not isinstance(value, kinds) or large:
            raise ValueError(f"{name} is {shown(value)} in its state")
    if state.get("client_log") and [*map(type, state["client_log"])] != [int] * 3:
        raise ValueError(f"client_log is {shown(state['client_log'])} in its state")
    extends = state.get("extends")
    if extends is not None and {name: type(v) for name, v in extends.items()} != EXTENDS:
        raise ValueError(f"extends is {shown(extends)} in its state")
    if "finished" not in state:
        raise ValueError("it has no state of a run")
    return state


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
    revision, changed = None, None
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is not None:
        revision = _git(package, "rev-parse", "HEAD")
        changed = _git(package.parent, "status", "--porcelain", "--", *packages)
    return {"commit": revision, "dirty": None if changed is None else bool(changed)}


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


def read_about(file: Path, remedy: str) -> dict[str, Any]:
    """The entries of an ``about.json``.

    Args:
        file: the file.
        remedy: what to do about damage, the last sentence of error messages.
    """
    with reading(file, remedy):
        entries = json.loads(read_stored(file, TEXT_BYTES).decode())
        if isinstance(entries, dict):
            before = entries.pop(CHECKSUM, None)  # none after an edit
            if before is not None and before != _checksum(entries):
                raise ValueError(f"it differs from its {CHECKSUM!r}; after an edit, remove it")
        return checked_entries(entries)


def write_about(file: Path, entries: Mapping[str, Any]) -> None:
    """Replace an ``about.json`` atomically."""
    text = json.dumps({**entries, CHECKSUM: _checksum(entries)}, indent=2)
    with replacing(file) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def with_notes(entries: dict[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    """The entries with further notes, of each kind one."""
    notes_of_run = of_each_kind([*entries.get(NOTES, []), *notes])
    return entries | {NOTES: notes_of_run} if notes_of_run else entries


def _checksum(entries: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(entries, sort_keys=True).encode())
