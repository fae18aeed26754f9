"""The contents of run folders: state, settings, costs and files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from wirelessfl.algorithms import LOCAL
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.base.files import is_draft, stored_size
from wirelessfl.base.import_paths import is_import_path
from wirelessfl.config import Config
from wirelessfl.config.choices import DEFAULTS, KINDS
from wirelessfl.config.sections import PLACES, SECTIONS
from wirelessfl.config.stored import plain
from wirelessfl.results.load import load, run_folders
from wirelessfl.results.selection import MACHINE
from wirelessfl.runs.folder.client_log import read_client_log
from wirelessfl.runs.folder.given_files import read_partition
from wirelessfl.runs.folder.run_folder import CLIENT_LOG, RunFolder
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.summaries import predictions

LOCKS = Path("/proc/locks")
VERSIONS = ("date", "wirelessfl", "commit", "dirty", "device_name", "python", "torch", "numpy")


def state_of(run: RunResult) -> str:
    """Whether a run is finished; running, in a process on this machine; or unfinished."""
    if run.finished:
        return "finished"
    return "running" if _locked(run.directory / "config.toml") else "unfinished"


def _locked(file: Path) -> bool:
    """Whether a process on this machine has locked a file; False if that is not known.

    To try the lock could stop a run that starts at the same moment.
    """
    try:
        inode, text = file.stat().st_ino, LOCKS.read_text(encoding="utf-8")
    except OSError:  # not Linux
        return False
    return any(
        words[1] == "FLOCK" and words[3] == "WRITE" and words[5].endswith(f":{inode}")
        for words in map(str.split, text.splitlines())
        if len(words) > 5 and words[1] != "->"
    )


def about_of(run: RunResult) -> dict[str, Any]:
    """The entries of ``about.json``; empty if it is missing or damaged."""
    try:
        return RunFolder(run.directory).about()
    except ConfigError:
        return {}


def listed(directory: Path) -> list[dict[str, Any]]:
    """One dict per run below a folder, by date; a damaged run has an ``error``."""
    lines = []
    for folder in run_folders(directory):
        try:
            run = load(folder)
            lines.append(_line(run))
        except ConfigError as error:
            lines.append({"folder": str(folder), "state": "damaged", "error": str(error)})
    return sorted(lines, key=lambda line: line.get("date") or "")


def _line(run: RunResult) -> dict[str, Any]:
    settings = run.settings
    summary = run.summary() if run.rows else {}
    return {
        "folder": str(run.directory),
        "algorithm": settings["algorithm"],
        "dataset": settings.get("dataset"),
        "uplink": settings.get("uplink"),
        "seed": settings.get("seed"),
        "round": summary.get("round"),
        "rounds": run.total_rounds,
        **{key: summary[key] for key in ("loss",) if summary and "accuracy" not in summary},
        "accuracy": summary.get("accuracy"),
        "state": state_of(run),
        "date": about_of(run).get("date"),
    }


def overview(run: RunResult, *, trust: bool = False) -> dict[str, Any]:
    """Everything that ``wirelessfl show`` says about a run.

    Args:
        run: a stored run.
        trust: whether its settings may name code to import, to compare them with defaults.
    """
    about = about_of(run)
    different, compared = non_defaults(run, trust=trust)
    return {
        "run": run.label,
        "folder": str(run.directory),
        "state": state_of(run),
        "ended": run.ended,
        "notes": list(run.notes),
        "round": run.summary()["round"] if run.rows else None,
        "rounds": run.total_rounds,
        "given": plain(dict((run.tables or {}).get("given", {}))),
        "settings": different,
        "without_defaults": compared,
        "computed_with": {k: run.settings[k] for k in MACHINE if k in run.settings},
        "summaries": run.summaries() if run.rows else [],
        "predicted": predictions(run.settings, run.rows),
        "clients": client_lines(run.directory),
        "last_rows": [run.rows_of(task)[-1] for task in run.tasks] or run.rows[-1:],
        "versions": {key: about[key] for key in VERSIONS if about.get(key) is not None},
        "data": about.get("data", {}),
        "named": about.get("named", {}),
        "resumed": len(about.get("resumed", [])),
        "files": _sizes(run.directory),
    }


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of the regular files in a folder by name, also while a process replaces some."""
    sizes = {}
    for file in sorted(folder.iterdir()):
        with suppress(OSError):  # a link, or a folder
            size = None if is_draft(file.name) else stored_size(file)
            if size is not None:
                sizes[file.name] = size
    return sizes


def client_lines(folder: Path) -> list[str]:
    """Where the time goes and who is the straggler, one line each; none without a client log.

    A damaged log is told in one line.
    """
    if not os.path.lexists(folder / CLIENT_LOG):
        return []
    try:
        log = read_client_log(folder)
    except ConfigError as error:
        return [str(error)]
    return log.lines() if len(log) else []


def draw_partition(folder: Path, file: Path) -> list[Path]:
    """Draw the labels of each client of a run.

    Args:
        folder: the run's folder.
        file: the figure; for a run with tables of tasks one figure each, with the task's name
            after that of the file.

    Returns:
        The files: a .png and a .pdf of each figure.
    """
    partitions = read_partition(folder)
    if not isinstance(partitions, dict):
        partitions = {"": partitions}
    files = []
    for task, partition in partitions.items():
        name = re.sub(r"[^\w.+-]+", "-", task)
        path = file.with_name(f"{file.stem}-{name}{file.suffix}") if task else file
        try:
            files += partition.draw(path)
        except DataError as error:
            of = f" of task {task!r}" if task else ""
            raise ConfigError(f"{folder}: the partition{of} cannot be drawn: {error}") from None
    return files


def non_defaults(run: RunResult, *, trust: bool = False) -> tuple[dict[str, Any], bool]:
    """Settings with an effect that differ from the defaults, by table.

    Settings of a choice are compared with the defaults of that choice.

    Returns:
        The settings, and whether defaults are left out. Some are not if the settings name code that
        is not trusted, or if defaults do not make a valid run.
    """
    tables = {k: v for k, v in (run.tables or {}).items() if k != "given"}
    ignored = {*PLACES, *MACHINE}
    alone: dict[str, Any] = {}
    named: dict[str, Any] = {}
    with suppress(ConfigError):
        alone, named = _defaults(run, trust)
    different: dict[str, Any] = {}
    for section, table in tables.items():
        if not isinstance(table, Mapping):  # tasks
            different[section] = [
                {k: v for k, v in task.items() if k not in ignored} for task in table
            ]
            continue
        kept = {}
        for key, value in table.items():
            defaults = (alone if key == "name" else named).get(section, {})
            default = defaults[key] if key in defaults else _static(section, table, key)
            if key not in ignored and value != default:
                kept[key] = value
        if section == "algorithm":
            inside = {"local": table["local"]} if table.get("local", LOCAL) != LOCAL else {}
            kept = {"name": table["name"], **inside, **kept}
        if kept:
            different[section] = kept
    return different, bool(named)


def _static(section: str, table: Mapping[str, Any], key: str) -> Any:
    """The default of a setting that has no effect in a run of defaults; None if unknown."""
    if section in SECTIONS:
        return plain(vars(SECTIONS[section]()).get(key))
    if section not in KINDS:
        return None
    if key == "name":
        return DEFAULTS.get(section)
    if is_import_path(table["name"]):
        return None
    try:
        choice = KINDS[section].find(table["name"])
    except ConfigError:
        return None
    return next((plain(f.default) for f in fields(choice) if f.name == key), None)


def _defaults(run: RunResult, trust: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Default tables of the algorithm alone, and with all named choices of the run."""
    config = run.with_trust(trust)
    tables = config.used_tables()
    names = {kind: tables[kind]["name"] for kind in KINDS if kind in tables}
    if config.given.model is not None:
        names.pop("model", None)
    name, local = config.named("algorithm"), config.tables["algorithm"].get("local")
    sessions = config.sessions.sessions
    base = Config.from_flags(name, local=local).changed(given=config.given)
    full = base.changed(**names, sessions=sessions).used_tables()
    if sessions is not None:
        full["sessions"].pop("sessions")
    return plain(base.used_tables()), plain(full)


def size_text(size: float) -> str:
    """A number of bytes in readable units."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def accuracy_text(value: float | None) -> str:
    """An accuracy or a loss; a diverged model has none."""
    return "diverged" if value is None else f"{value:.3f}"
