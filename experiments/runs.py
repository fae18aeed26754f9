"""Runs that are made once: kept on disk under the hash of their settings."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from rich.console import Console

from wirelessfl.cli.show import progress
from wirelessfl.config import Config
from wirelessfl.runs.run import RunResult, resume, run


def settings_hash(config: Config) -> str:
    """What tells the runs apart: all settings but where they are kept."""
    bare = config.model_copy(update={"run": config.run.model_copy(update={"out": None})})
    bare = bare.model_copy(update={"data": bare.data.model_copy(update={"data_dir": None})})
    return hashlib.sha256(bare.to_toml().encode()).hexdigest()[:16]


def kept_run(label: str, root: Path, algorithm: str, **flags: Any) -> RunResult:
    """The run of these settings: read from disk, gone on with, or made.

    Args:
        label: shown beside the progress bar.
        root: folder of all runs.
        algorithm: its name.
        flags: settings by their flag names.
    """
    config = Config.from_flags(algorithm, **flags)
    folder = root / f"{algorithm}-{settings_hash(config)}"
    console = Console(stderr=True)
    with progress(label, config.training.rounds, console) as show:
        if (folder / "config.toml").is_file():
            return resume(folder, on_row=show)
        out = config.run.model_copy(update={"out": folder})
        return run(config.model_copy(update={"run": out}), on_row=show)
