"""Runs that are made once: kept on disk under the hash of their settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.runs.directory import Row, RunDirectory
from wirelessfl.runs.run import RunResult, resume, run


def settings_hash(config: Config) -> str:
    """What tells runs apart: all settings but where the data and the results are kept."""
    bare = config.model_copy(update={"run": config.run.model_copy(update={"out": None})})
    bare = bare.model_copy(update={"data": bare.data.model_copy(update={"data_dir": None})})
    return hashlib.sha256(bare.to_toml().encode()).hexdigest()[:16]


def kept_folder(config: Config, root: Path) -> Path:
    """Where the run of these settings is kept below ``root``."""
    return root / f"{config.algorithm['name'].replace(':', '.')}-{settings_hash(config)}"


def is_finished(config: Config, root: Path) -> bool:
    """Whether the run of these settings is kept below ``root``, to its end."""
    try:
        checkpoint = RunDirectory(kept_folder(config, root)).load()
    except ConfigError:
        return False
    return checkpoint is not None and bool(checkpoint[1]["finished"])


def kept_run(config: Config, root: Path, on_row: Callable[[Row], None] | None = None) -> RunResult:
    """The run of these settings: read from disk, gone on with, or made.

    Args:
        config: the settings; ``out`` counts for nothing.
        root: folder of all runs.
        on_row: called with each row as it is written.
    """
    folder = kept_folder(config, root)
    if (folder / "config.toml").is_file():
        return resume(folder, on_row=on_row)
    out = config.run.model_copy(update={"out": folder})
    return run(config.model_copy(update={"run": out}), on_row=on_row)


def why_failed(config: Config, root: Path, on_row: Callable[[Row], None]) -> str:
    """Make, or go on with, the run of these settings as ``kept_run`` does.

    Returns:
        The reason of its failure in a line; an empty text where it has come to its end.
    """
    try:
        kept_run(config, root, on_row)
    except (ConfigError, DataError, TrainingError) as error:
        return str(error) or type(error).__name__
    except Exception as error:  # whatever a user's classes raise: the other runs go on
        lines = str(error).splitlines() or [""]
        return f"{type(error).__name__}: {lines[0]}"
    return ""
