"""FedAST's Figure 1: timelines of FedAST and Sync-ST with the same twelve clients and two tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wirelessfl.config import Config
from wirelessfl.results.selection import NAMES
from wirelessfl.runs.timeline import timeline

SECONDS = 60.0
METHODS: dict[str, dict[str, Any]] = {
    "fedast": {"requests": 6, "buffer": 3},
    "sync-st": {"first": 3},
}
COMMON: dict[str, Any] = {
    "task": ("mnist,model=mlp", "fashion-mnist,model=lenet5"),
    "clients": 12,
    "local_steps": 27,
    "rounds": 1_000_000,
    "delays": "shifted-exponential",
}


def timelines(out: Path, seed: int = 1) -> list[Path]:
    """Draw one simulated minute of each method without training; return the files."""
    files = []
    for method, settings in METHODS.items():
        line = timeline(Config.from_flags(method, **COMMON, **settings, seed=seed), SECONDS)
        merges = ", ".join(
            f"{sum(merge.task == i for merge in line.merges)} of {name}"
            for i, name in enumerate(line.tasks)
        )
        print(f"{NAMES[method]}, merges in {SECONDS:.0f} simulated seconds: {merges}")
        files += line.draw(out / f"timeline-{method}")
    return files
