"""Runs that are executed only once; the folder of each is named by the hash of its settings.

The hash includes the code and files that settings name, so a run of edited code has a new folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from wirelessfl.config import Config
from wirelessfl.config.task_tables import TASK_SETTINGS
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.import_paths import short
from wirelessfl.observers import Observer
from wirelessfl.pricing.same_training import check_independent, of_radio
from wirelessfl.runs.directory import InUseError, Row, RunDirectory
from wirelessfl.runs.priced import price_run
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume, run
from wirelessfl.runs.settings_hash import non_defaults, settings_hash


def _same_settings(config: Config, folder: Path) -> bool:
    """Whether the run in ``folder`` has these settings; its hash ignores changes of defaults."""
    _, stored = RunDirectory.open(folder, config.code)
    return _without_run(config) == _without_run(stored) and config.run.seed == stored.run.seed


def _without_run(config: Config) -> dict[str, Any]:
    """Settings that differ from their defaults, without those of section ``run``."""
    settings = non_defaults(config)
    found = {name: value for name, value in settings.items() if not name.startswith("run.")}
    if "task" in found:
        found["task"] = [
            {name: value for name, value in table.items() if name not in TASK_SETTINGS["run"]}
            for table in found["task"]
        ]
    return found


def training_key(config: Config) -> str | None:
    """What identifies the training of a run; None if it depends on the radio.

    Runs with the same key train the same model.
    """
    try:
        check_independent(config)
    except ConfigError:
        return None
    settings = non_defaults(config)
    kept = {key: v for key, v in settings.items() if not of_radio(*key.partition(".")[::2])}
    return repr(sorted(kept.items()))


def kept_name(config: Config) -> str:
    """Name of the run with these settings: its algorithm, and their hash."""
    return f"{short(config.named('algorithm')).replace(':', '.')}-{settings_hash(config)}"


def kept_folder(config: Config, root: Path) -> Path:
    """Folder below ``root`` for the run with these settings."""
    return root / kept_name(config)


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


def kept_run(
    config: Config,
    root: Path,
    on_row: Callable[[Row], None] | None = None,
    observers: Sequence[Observer] = (),
    on_note: Callable[[str], None] | None = None,
) -> RunResult:
    """Read the run with these settings from disk, resume it, or start it.

    If another process is executing it, this one waits.

    Args:
        config: the settings; ``out`` is ignored.
        root: folder of all runs.
        on_row: called with each row as it is written.
        observers: see a run that is started or resumed, see ``wirelessfl.observers``.
        on_note: as for ``wirelessfl.run``.

    Raises:
        ConfigError: the folder contains a run that was made with other default settings.
    """
    folder = kept_folder(config, root)
    told: dict[str, Any] = {"on_row": on_row, "on_note": on_note, "observers": observers}
    while True:
        try:
            if not RunDirectory.holds_run(folder):
                return run(config.with_run({"out": folder}), **told)
            if not _same_settings(config, folder):
                raise ConfigError(
                    f"{folder} contains a run made with other default settings. Remove it, or "
                    "choose another folder."
                )
            RunDirectory(folder).wait()
            return resume(folder, trust=config.code, **told)
        except InUseError:  # another sweep has been faster
            pass


def why_failed(
    config: Config, folder: Path, on_row: Callable[[Row], None], source: Path | None = None
) -> str:
    """Execute the run with these settings by ``kept_run``; its folder keeps its notes.

    Args:
        config: the settings.
        folder: folder of the run, from ``kept_folder``, perhaps in another process.
        on_row: called with each row as it is written.
        source: folder of a finished run that trains the same model over another radio, from which
            this run is priced if possible.

    Returns:
        The reason for its failure, in one line; an empty string if it has finished.
    """
    try:
        if kept_folder(config, folder.parent) != folder:
            return (
                "code or files that the settings name have changed since the sweep began, or are "
                "others on this machine. Start the sweep again."
            )
        rows = None
        if source is not None and not RunDirectory.holds_run(folder):
            with suppress(ConfigError, DataError, OSError):  # if it cannot be priced, it is trained
                rows = price_run(config, source, folder)
        if rows is None:
            kept_run(config, folder.parent, on_row, on_note=lambda note: None)
        for row in rows or ():
            on_row(row)
    except (ConfigError, DataError, TrainingError) as error:
        return str(error) or type(error).__name__
    except Exception as error:  # a user's class can raise any error; other runs continue
        lines = str(error).splitlines() or [""]
        return f"{type(error).__name__}: {lines[0]}"
    return ""
