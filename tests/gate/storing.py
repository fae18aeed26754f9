"""The store: a folder with the rows, parameters and origin of each configuration.

``NAME.json`` contains rows, settings and origin, ``NAME.safetensors`` the parameters.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.gate.configurations import Configuration
from tests.gate.running import Outcome

ROOT = Path(__file__).parents[2]
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "cvxpy", "transformers", "peft")
"""Packages whose versions affect results bitwise."""


@dataclass(frozen=True)
class Origin:
    """Code and machine that produced results.

    Args:
        commit: commit of the repository, with ``-dirty`` if files were modified.
        processor: its name, and the vector instructions that torch uses on it.
        versions: versions of the installed packages.
    """

    commit: str
    processor: str
    versions: dict[str, str]

    def mismatch(self, now: Origin) -> str | None:
        """The reason why results cannot be compared with those of ``now``; None if they can."""
        if self.processor != now.processor:
            return f"stored on {self.processor}, but this is {now.processor}"
        for name in sorted({*self.versions, *now.versions}):
            before, after = self.versions.get(name, "none"), now.versions.get(name, "none")
            if before != after:
                return f"stored with {name} {before}, but {name} is {after} now"
        return None


@dataclass(frozen=True)
class Stored:
    """Stored results of a configuration, without its parameters."""

    origin: Origin
    settings: Any
    rows: list[dict[str, Any]]


def default_folder() -> Path:
    """``$WIRELESSFL_GATE``, or a folder in the user's cache."""
    if folder := os.environ.get("WIRELESSFL_GATE"):
        return Path(folder).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "wirelessfl", "gate")


def current_origin() -> Origin:
    """The origin of results produced now."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Origin(_commit(), _processor(), versions)


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    command += ["--exclude", "*"]  # ignore tags
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name} ({torch.backends.cpu.get_cpu_capability()})"


def settings_of(configuration: Configuration) -> Any:
    """The configuration as JSON, to detect changes since it was stored."""
    plain = {
        "algorithm": configuration.algorithm,
        "how": configuration.how,
        "flags": dict(configuration.flags),
        "objects": {name: make.__name__ for name, make in configuration.objects.items()},
        "files": configuration.files and configuration.files.__name__,
        "commands": configuration.commands,
        "goal": dict(configuration.goal),
    }
    return json.loads(json.dumps(plain, sort_keys=True))


def write(
    folder: Path, name: str, origin: Origin, configuration: Configuration, outcome: Outcome
) -> None:
    """Store an outcome, replacing the previous one; the JSON file is completed last."""
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)
    save_file(outcome.params, folder / f"{name}.safetensors")
    stored = Stored(origin, settings_of(configuration), outcome.rows)
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps(asdict(stored), indent=1), encoding="utf-8")
    draft.replace(file)


def read(folder: Path, name: str) -> Stored | None:
    """The stored results of a configuration; None if there are none or they are unreadable."""
    file = folder / f"{name}.json"
    if not file.exists():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return Stored(Origin(**found["origin"]), found["settings"], found["rows"])
    except (KeyError, TypeError, ValueError):  # damaged, or from another version of the gate
        return None


def read_outcome(folder: Path, name: str, stored: Stored) -> Outcome:
    """The stored rows and parameters of a configuration."""
    return Outcome(stored.rows, load_file(folder / f"{name}.safetensors"))


def numerics(rows: list[dict[str, Any]]) -> int | None:
    """The value of ``numerics`` in the rows; None if the rows lack this field."""
    return next((row["numerics"] for row in rows if "numerics" in row), None)
