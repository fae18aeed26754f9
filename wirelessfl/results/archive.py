"""Finished runs as compressed files: settings, versions, device, seconds and rows.

A file has a few kilobytes, so that a repository can keep the runs behind its figures and verdicts.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import DataError
from wirelessfl.config import Config
from wirelessfl.config.sections import WITHOUT_RESULTS
from wirelessfl.config.stored import of_today
from wirelessfl.runs.folder.about import NUMERICS
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.summaries import Transition, transitions

FORMAT = 1
"""Version of the files; incremented when their fields change."""
SUFFIX = ".json.xz"
DROPPED = ("wall_seconds", "numerics")
"""Fields of rows that are stored once per run."""
MACHINE = (
    *("device", "executor", "chunk", "replay", "workers", "threads", "checkpoint_seconds"),
    "client_log",
)
"""Settings of ``[run]`` that say where a run is computed, not what."""
Tables = dict[str, Any]
Row = dict[str, Any]

DAMAGED = (lzma.LZMAError, LookupError, OSError, StopIteration, TypeError, ValueError)
"""Errors in reading a damaged file."""


@dataclass(frozen=True)
class StoredRun:
    """A finished run.

    Args:
        settings: all settings with an effect, by table, see ``effective``.
        rows: its rows, see ``wirelessfl.RunResult``, without wall-clock seconds.
        about: versions, commit, date and device, see ``wirelessfl.runs.folder.about``;
            ``numerics`` is the version of the results.
        machine: executor, chunk, workers and threads.
        seconds: wall-clock seconds of the run.
    """

    settings: dict[str, Any]
    rows: list[Row]
    about: dict[str, Any]
    machine: dict[str, Any]
    seconds: float

    @classmethod
    def of(cls, result: RunResult) -> StoredRun:
        """The finished run in a folder of a run."""
        about = RunFolder(result.directory).about()
        about["numerics"] = min(row["numerics"] for row in result.rows)
        run = vars(result.config.run)
        return cls(
            effective(result.config),
            [{k: v for k, v in row.items() if k not in DROPPED} for row in result.rows],
            about,
            {key: run[key] for key in MACHINE if run.get(key) is not None},
            round(result.rows[-1]["wall_seconds"], 3),
        )

    @property
    def current(self) -> bool:
        """Whether today's code gives these results; otherwise figures mark the run."""
        return bool(self.about["numerics"] == NUMERICS)

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.settings["run"]["seed"])

    def rows_of(self, task: str) -> list[Row]:
        """The rows of one task."""
        return [row for row in self.rows if row.get("task") == task]

    @cached_property
    def transitions(self) -> list[Transition]:
        """Accuracy after each change of clients, see ``wirelessfl.runs.summaries``."""
        return transitions(self.rows)

    def save(self, file: Path) -> None:
        """Write the file, which is complete or absent at any moment."""
        write_compressed(file, {"format": FORMAT, **self.content()})

    @classmethod
    def load(cls, file: Path) -> StoredRun:
        """Read a file.

        Raises:
            DataError: it is damaged, or was written by a later version.
        """
        try:
            return cls.of_content(read_compressed(file, FORMAT))
        except DAMAGED as error:
            raise DataError(
                f"{file} is not a file of a finished run: remove it. "
                f"({type(error).__name__}: {error})"
            ) from error

    def content(self) -> dict[str, Any]:
        """All fields as JSON represents them, with rows by column."""
        kinds = list(dict.fromkeys(tuple(row) for row in self.rows))
        return {
            "settings": self.settings,
            "about": self.about,
            "machine": self.machine,
            "seconds": self.seconds,
            "fields": kinds,
            "kinds": [kinds.index(tuple(row)) for row in self.rows],
            "columns": {
                name: [row[name] for row in self.rows if name in row]
                for name in dict.fromkeys(name for kind in kinds for name in kind)
            },
        }

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> StoredRun:
        """The run with this ``content``; raises one of ``DAMAGED`` if parts of it are missing."""
        columns = {name: iter(values) for name, values in content["columns"].items()}
        rows: list[Row] = []
        for kind, same in groupby(content["kinds"]):  # most runs of equal kinds are long
            count, names = len([*same]), content["fields"][kind]
            values = [[*islice(columns[name], count)] for name in names]
            if not all(len(column) == count for column in values):
                raise ValueError("a column is too short")
            rows += [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
        parts = (content[name] for name in ("settings", "about", "machine", "seconds"))
        settings, about, machine, seconds = parts
        return cls(of_today(settings), rows, about, machine, seconds)


def write_compressed(file: Path, content: Mapping[str, Any]) -> None:
    """Write a compressed JSON file, which is complete or absent at any moment."""
    text = json.dumps(content, separators=(",", ":"))
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_bytes(lzma.compress(text.encode(), preset=6))
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def read_compressed(file: Path, version: int) -> dict[str, Any]:
    """The content of a compressed JSON file; raises one of ``DAMAGED`` if it is not readable.

    Args:
        file: its path.
        version: its ``format``, which another version of the package may have changed.
    """
    content: dict[str, Any] = json.loads(lzma.decompress(file.read_bytes()))
    if content["format"] != version:
        raise ValueError(f"format {content['format']}")
    return content


def effective(config: Config) -> Tables:
    """All settings with an effect on the results, by table and key; settings of None are left out.

    A run of several tasks has the settings of each task below ``tasks`` and its name.
    """
    tables = _plain(config.used_tables())
    objects = tables.pop("given", None) or {}
    # The other objects replace settings that the run then lacks.
    kept = {name: objects[name] for name in ("redesign", "augment", "trainer") if name in objects}
    if kept:
        tables["given"] = kept
    if tables.pop("task", None):
        tables["tasks"] = {name: effective(task) for name, task in config.tasks.items()}
    tables["run"] = {key: v for key, v in tables["run"].items() if key not in MACHINE}
    return {section: table for section, table in tables.items() if table}


def _plain(value: Any) -> Any:
    """``value`` as JSON represents it, without None and without paths of data and output."""
    if isinstance(value, Mapping):
        kept = {k: v for k, v in value.items() if v is not None and k not in WITHOUT_RESULTS}
        return {key: _plain(v) for key, v in kept.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
