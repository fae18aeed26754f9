"""The file ``about.json`` of a run: versions, commit, date, device, notes and hashes.

Also the versions and formats of what the folder of a run stores.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from channels.concurrency import ignored_warnings
from wirelessfl.base.files import TEXT_BYTES, read_stored, reading, replacing
from wirelessfl.base.packages import version
from wirelessfl.base.wording import shown

LAYOUT = 10
"""Version of checkpoints, rows and settings; incremented when entries change name or meaning."""
NUMERICS = 1
"""Version of the results; incremented whenever the results of a run are changed on purpose.

Runs with equal ``numerics`` and resolved settings on the same machine have bit-identical rows in
all versions of the package. With different ``numerics``, any value may differ.
"""
NOTES = "notes"
"""Entry of ``about.json``: the notes on the run, if there are any."""
PACKAGE = Path(__file__).parents[2]
CHECKSUM = "checksum"
"""Entry that has the checksum of the others."""


def _format(*needed: str, **kinds: Any) -> type[BaseModel]:
    """Entries by name and type, and which of them are needed; further entries are ignored."""
    fields: dict[str, Any] = {n: (kind, ... if n in needed else None) for n, kind in kinds.items()}
    return create_model("Format", __config__=ConfigDict(strict=True), **fields)


Whole = Annotated[int, Field(ge=0, lt=1 << 63)]
Number = Annotated[float, Field(gt=-(2.0**63), lt=2.0**63)]
Table = dict[str, Any]
Hashes = dict[str, str]
ENTRIES = _format(
    **dict.fromkeys(("wirelessfl", "date", "device", "device_name", "python", "torch"), str),
    **dict.fromkeys(("numpy", "numba", "settings", "priced_from"), str),
    commit=str | None,
    dirty=bool | None,
    numerics=Whole,
    data=Hashes,
    named=dict[str, Hashes],
    hashes=Hashes,
    step_costs=list[Table | None],
    resumed=list[Table],
    extended=list[Table],
    notes=list[str],
)
"""Entries of ``about.json``; others are lost when it is written."""
_covered: Table = {
    "finished": bool,
    "ended": str | None,
    "client_log": Annotated[list[Whole], Field(min_length=3, max_length=3)] | None,
    **dict.fromkeys(("rows_bytes", "rows_checksum"), Whole),
}
STATE = _format(
    *("finished", "fingerprint", "numerics", "rows_bytes", "rows_checksum"),
    **_covered,
    **dict.fromkeys(("schedule", "handler"), Table),
    fingerprint=str,
    extends=_format("began", "text", "entry", began=str, text=str, entry=Table) | None,
    learners=list[Table],
    tasks=list[str] | None,
    reached=list[Whole],
    **dict.fromkeys(("sim_seconds", "wall_seconds"), Number),
    task_reasons=Hashes,
    numerics=Whole,
)
"""Entries of the state of a checkpoint."""
COVERED = _format("finished", "rows_bytes", "rows_checksum", **_covered)
"""Those with which the rows of runs of other versions are read."""


def checked(content: Any, kind: type[BaseModel]) -> dict[str, Any]:
    """The entries of a format.

    Raises:
        ValueError: an entry is missing, or has another type.
    """
    try:
        kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"])) or "it"
        if first["type"] == "missing":
            raise ValueError(f"it has no {name}") from None
        raise ValueError(f"{name} is {shown(first['input'])}, which a run does not store") from None
    return {name: value for name, value in content.items() if name in kind.model_fields}


def about(device: str) -> dict[str, Any]:
    """Versions, commit, date and device of a run that starts now.

    Args:
        device: torch's name of the training device.
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
        **({"numba": metadata.version("numba")} if find_spec("numba") else {}),
        "numerics": NUMERICS,
    }


@cache
def commit(package: Path) -> dict[str, Any]:
    """``commit`` of a package, and whether files are ``dirty``; None if unknown.

    A work tree that ignores the package, e.g. one that contains the virtual environment, does not
    count.
    """
    revision, changed = None, None
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is not None:
        packages = ("channels", "solvers", package.name)
        revision = _git(package, "rev-parse", "HEAD")
        changed = _git(package.parent, "status", "--porcelain", "--", *packages)
    return {"commit": revision, "dirty": None if changed is None else bool(changed)}


def _git(folder: Path, *words: str) -> str | None:
    """Output of a git command; None if git fails or is not installed."""
    # In a git hook of another repository, variables would redirect git to that repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        with ignored_warnings(category=BytesWarning):  # as subprocess does, but not in turn
            done = subprocess.run(
                ["git", "--no-optional-locks", "-C", str(folder), *words],
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
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # not Linux
        text = ""
    model = re.search(r"^model name\s*:[ \t]*(\S.*)", text, re.MULTILINE)
    return model[1].strip() if model else platform.processor() or platform.machine()


def read_about(file: Path, remedy: str) -> dict[str, Any]:
    """The entries of an ``about.json``; messages about damage end with the remedy."""
    with reading(file, remedy):
        entries = json.loads(read_stored(file, TEXT_BYTES).decode())
        if isinstance(entries, dict):
            before = entries.pop(CHECKSUM, None)  # none after an edit
            if before is not None and before != _checksum(entries):
                raise ValueError(f"it differs from its {CHECKSUM!r}; after an edit, remove it")
        return checked(entries, ENTRIES)


def write_about(file: Path, entries: Mapping[str, Any]) -> None:
    """Replace an ``about.json`` atomically."""
    text = json.dumps({**entries, CHECKSUM: _checksum(entries)}, indent=2)
    with replacing(file) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def _checksum(entries: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(entries, sort_keys=True).encode())
