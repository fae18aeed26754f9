"""The store: a folder with the rows and parameters of each configuration, and where they are from.

``NAME.json`` holds rows, settings and origin, ``NAME.safetensors`` the parameters.
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
"""On whose versions results depend to the bit."""


@dataclass(frozen=True)
class Origin:
    """What results were made with.

    Args:
        commit: of the repository, with ``-dirty`` where files were changed.
        processor: its name, and the vector instructions that torch uses on it.
        versions: of the packages that are installed.
    """

    commit: str
    processor: str
    versions: dict[str, str]

    def why_not(self, now: Origin) -> str | None:
        """Why results of this origin cannot equal those of ``now`` to the bit."""
        if self.processor != now.processor:
            return f"stored on {self.processor}, and this is {now.processor}"
        for name in sorted({*self.versions, *now.versions}):
            own, other = self.versions.get(name, "none"), now.versions.get(name, "none")
            if own != other:
                return f"stored with {name} {own}, and {name} is {other} now"
        return None


@dataclass(frozen=True)
class Stored:
    """What the store says of a configuration, but for its parameters."""

    origin: Origin
    settings: Any
    rows: list[dict[str, Any]]


def default_folder() -> Path:
    """``$WIRELESSFL_GATE``, else a folder in the user's cache."""
    if own := os.environ.get("WIRELESSFL_GATE"):
        return Path(own).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "wirelessfl", "gate")


def present_origin() -> Origin:
    """That of results that are made now."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Origin(_commit(), _processor(), versions)


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    command += ["--exclude", "*"]  # never by a tag
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
    """A configuration in plain values, to see whether it has changed since."""
    plain = {
        "algorithm": configuration.algorithm,
        "how": configuration.how,
        "flags": dict(configuration.flags),
        "objects": {name: make.__name__ for name, make in configuration.objects.items()},
        "files": configuration.files and configuration.files.__name__,
    }
    return json.loads(json.dumps(plain, sort_keys=True))


def write(
    folder: Path, name: str, origin: Origin, configuration: Configuration, outcome: Outcome
) -> None:
    """Store an outcome in place of the one before; the JSON file is there when all is."""
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)
    save_file(outcome.params, folder / f"{name}.safetensors")
    stored = Stored(origin, settings_of(configuration), outcome.rows)
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps(asdict(stored), indent=1), encoding="utf-8")
    draft.replace(file)


def read(folder: Path, name: str) -> Stored | None:
    """What is stored of a configuration; None: nothing, or nothing that can be read."""
    file = folder / f"{name}.json"
    if not file.exists():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return Stored(Origin(**found["origin"]), found["settings"], found["rows"])
    except (KeyError, TypeError, ValueError):  # damaged, or of another version of the gate
        return None


def read_outcome(folder: Path, name: str, stored: Stored) -> Outcome:
    """The same with its parameters."""
    return Outcome(stored.rows, load_file(folder / f"{name}.safetensors"))


def numerics(rows: list[dict[str, Any]]) -> int | None:
    """The number of the engine's arithmetic that rows carry; None: they carry none."""
    return next((row["numerics"] for row in rows if "numerics" in row), None)
