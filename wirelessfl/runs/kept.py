"""Runs that are executed once and stored in a folder named by the hash of their settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from wirelessfl.algorithms import LOCAL
from wirelessfl.config import Config
from wirelessfl.config.sections import PLACES
from wirelessfl.config.task_settings import inherited
from wirelessfl.config.task_tables import TASK_SETTINGS
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.runs.directory import Row, RunDirectory
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume, run
from wirelessfl.setup.given_objects import check_given


def settings_hash(config: Config) -> str:
    """Hash of the settings that differ from their defaults, without paths.

    A new setting with its default value does not change the hash, so older runs are still found.

    Raises:
        ConfigError: the settings need an object that must be passed to ``wirelessfl.run``.
    """
    check_given(config.given)
    return hashlib.sha256(repr(sorted(_said(config).items())).encode()).hexdigest()[:16]


def _said(config: Config) -> dict[str, Any]:
    """Settings that differ from their defaults, by section and name."""
    said: dict[str, Any] = {}
    config = config.resolve()  # stored settings are resolved too
    for section, settings in config:
        if section == "task":
            if settings:
                said["task"] = [_said_of_task(config, table) for table in settings]
            continue
        if isinstance(settings, BaseModel):
            known = {name: info.default for name, info in type(settings).model_fields.items()}
            values = dict(settings)
        elif settings is not None:
            choice = getattr(config.choices, section)
            known = {f.name: f.default for f in fields(choice)} | {"local": LOCAL}
            values = settings
        else:
            continue
        for name, value in values.items():
            if name not in PLACES and known.get(name, MISSING) != value:
                said[f"{section}.{name}"] = value
    return said


def _said_of_task(config: Config, table: Mapping[str, Any]) -> dict[str, Any]:
    """A task's table without values that equal those of the run."""
    run = inherited(config, table, config.tasks[table["name"]])
    return {
        key: value for key, value in sorted(table.items()) if key not in run or value != run[key]
    }


def _same_settings(config: Config, folder: Path) -> bool:
    """Whether the run in ``folder`` has these settings, even if defaults have changed since."""
    _, stored = RunDirectory.open(folder)
    return _learnt(config) == _learnt(stored) and config.run.seed == stored.run.seed


def _learnt(config: Config) -> dict[str, Any]:
    """Settings that differ from their defaults, without those of section ``run``."""
    said = {name: value for name, value in _said(config).items() if not name.startswith("run.")}
    if "task" in said:
        said["task"] = [
            {name: value for name, value in table.items() if name not in TASK_SETTINGS["run"]}
            for table in said["task"]
        ]
    return said


def kept_folder(config: Config, root: Path) -> Path:
    """Folder below ``root`` for the run with these settings."""
    return root / f"{config.algorithm['name'].replace(':', '.')}-{settings_hash(config)}"


def is_finished(config: Config, root: Path) -> bool:
    """Whether ``root`` contains a finished run with these settings."""
    folder = kept_folder(config, root)
    try:
        checkpoint = RunDirectory(folder).load()
        if checkpoint is None or not _same_settings(config, folder):
            return False
    except ConfigError:
        return False
    return bool(checkpoint[1]["finished"])


def kept_run(config: Config, root: Path, on_row: Callable[[Row], None] | None = None) -> RunResult:
    """Execute the run with these settings: read it from disk, resume it, or start it.

    Args:
        config: the settings; ``out`` is ignored.
        root: folder of all runs.
        on_row: called with each row as it is written.
    """
    folder = kept_folder(config, root)
    if (folder / "config.toml").is_file():
        if not _same_settings(config, folder):
            raise ConfigError(
                f"{folder} contains a run made with other default settings. Remove it, or choose "
                "another folder."
            )
        return resume(folder, on_row=on_row)
    return run(config.with_run({"out": folder}), on_row=on_row)


def why_failed(config: Config, root: Path, on_row: Callable[[Row], None]) -> str:
    """Execute the run with these settings, as ``kept_run`` does.

    Returns:
        The reason of its failure in one line; an empty string if it has finished.
    """
    try:
        kept_run(config, root, on_row)
    except (ConfigError, DataError, TrainingError) as error:
        return str(error) or type(error).__name__
    except Exception as error:  # a user's classes can raise anything; other runs continue
        lines = str(error).splitlines() or [""]
        return f"{type(error).__name__}: {lines[0]}"
    return ""
