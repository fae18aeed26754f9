"""Sealed tables: all runs of a finished study in one compressed JSON file, ``rows/STUDY.json.xz``.

A table has the cases of its study with the names of their runs, so that no configuration is
resolved to read it. ``python -m experiments seal`` writes tables, see ``experiments.seal``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import DataError
from wirelessfl.results.archive import DAMAGED, SUFFIX, StoredRun, read_compressed

FORMAT = 1
"""Version of the tables; incremented when their fields change."""
SINGLE = f"*-*{SUFFIX}"
"""Files of one run: its name has a hyphen, and that of a study has none."""
INDEX = "index.csv"
"""File that lists the runs of all tables in its folder."""
Settings = dict[str, Any]
Names = dict[int, str]
"""Names of runs by seed."""


@dataclass(frozen=True)
class StudyTable:
    """The runs of a study.

    Args:
        study: name of the study.
        cases: settings of its cases as in its settings file, and the names of their runs by seed.
        runs: ``StoredRun.content`` of the runs in this table, by name.
        elsewhere: names of runs that lie in the table of another study, with its name.
    """

    study: str
    cases: list[tuple[Settings, Names]]
    runs: dict[str, Mapping[str, Any]]
    elsewhere: dict[str, str]

    @cached_property
    def _by_case(self) -> dict[str, Names]:
        by_case: dict[str, Names] = {}
        for settings, names in self.cases:
            by_case.setdefault(key(settings), {}).update(names)
        return by_case

    def names(self, settings: Settings, seeds: Collection[int]) -> list[str] | None:
        """The names of the runs of a case; None if the table lacks the case or one of its seeds."""
        by_seed = self._by_case.get(key(settings), {})
        return [by_seed[seed] for seed in seeds] if by_seed.keys() >= set(seeds) else None

    def places(self, settings: Settings, seeds: Collection[int]) -> list[tuple[str, str]] | None:
        """The runs of a case, each with the study whose table has it; None as for ``names``."""
        names = self.names(settings, seeds)
        return names and [(name, self.elsewhere.get(name, self.study)) for name in names]

    def run(self, name: str) -> StoredRun:
        """A run in this table."""
        return StoredRun.of_content(self.runs[name])

    def content(self) -> dict[str, Any]:
        """The content of its file: settings of all its runs once, and of each run the others."""
        shared = shared_settings([run["settings"] for run in self.runs.values()])
        return {
            "format": FORMAT,
            "study": self.study,
            "cases": [{"settings": one, "runs": names} for one, names in self.cases],
            "elsewhere": self.elsewhere,
            "settings": shared,
            "runs": {
                name: {**run, "settings": _without(run["settings"], shared)}
                for name, run in self.runs.items()
            },
        }

    @classmethod
    def load(cls, file: Path) -> StudyTable:
        """Read a table."""
        try:
            content = read_compressed(file, FORMAT)
            cases = [
                (one["settings"], {int(seed): name for seed, name in one["runs"].items()})
                for one in content["cases"]
            ]
            runs = {
                name: {**run, "settings": _joined(content["settings"], run["settings"])}
                for name, run in content["runs"].items()
            }
            return cls(content["study"], cases, runs, content["elsewhere"])
        except (*DAMAGED, AttributeError) as error:
            raise DataError(
                f"{file} is not a sealed table of a study: restore it with `git checkout`. "
                f"({type(error).__name__}: {error})"
            ) from error


def key(settings: Settings) -> str:
    """Text that equal settings of cases have in common; the folder of the data has no effect."""
    kept = {name: value for name, value in settings.items() if name != "data_dir"}
    return json.dumps(kept, sort_keys=True, default=str)


def shared_settings(every: Iterable[Settings]) -> Settings:
    """The settings, by table and key, that all runs have with equal values."""
    shared: Settings | None = None
    for other in every:
        if shared is None:
            shared = other
            continue
        shared = {
            section: {
                k: v
                for k, v in table.items()
                if k in other[section] and json.dumps(v) == json.dumps(other[section][k])
            }
            for section, table in shared.items()
            if section in other
        }
    return shared or {}


def _without(settings: Settings, shared: Settings) -> Settings:
    rest = {
        section: {k: v for k, v in table.items() if k not in shared.get(section, {})}
        for section, table in settings.items()
    }
    return {section: table for section, table in rest.items() if table or section not in shared}


def _joined(shared: Settings, rest: Settings) -> Settings:
    return {
        section: shared.get(section, {}) | rest.get(section, {}) for section in {**shared, **rest}
    }


def tables(rows: Path) -> dict[str, StudyTable]:
    """All tables in a folder, by name of their study."""
    files = sorted({*rows.glob(f"*{SUFFIX}")} - {*rows.glob(SINGLE)})
    return {file.name.removesuffix(SUFFIX): _load(file, _stamp(file)) for file in files}


def table(rows: Path, study: str) -> StudyTable | None:
    """The table of a study; None if it is not sealed."""
    file = rows / (study + SUFFIX)
    return _load(file, _stamp(file)) if file.is_file() else None


def places(rows: Path) -> dict[str, str]:
    """The study in whose table each sealed run lies, by name of the run.

    From the index; without one, from the tables, which are listed again only if the folder changes.
    """
    file = rows / INDEX
    if file.is_file():
        return _indexed(file, _stamp(file))
    return _listed(rows, _stamp(rows)) if rows.is_dir() else {}


def run(rows: Path, name: str, study: str | None = None) -> StoredRun | None:
    """A sealed run; None if it is in no table.

    Args:
        rows: folder of the tables.
        name: name of the run.
        study: study whose table has the run; None to look it up in the index.
    """
    study = study or places(rows).get(name)
    if study is None:
        return None
    sealed = table(rows, study)
    if sealed is None or name not in sealed.runs:
        raise DataError(
            f"{rows / (study + SUFFIX)} lacks the run {name}: restore the table with "
            "`git checkout`, or write the index again with `python -m experiments seal`."
        )
    return sealed.run(name)


def _stamp(file: Path) -> tuple[int, int]:
    """What changes when a file, or one in a folder, is written again."""
    status = file.stat()
    return status.st_mtime_ns, status.st_size


@cache
def _load(file: Path, stamp: tuple[int, int]) -> StudyTable:
    return StudyTable.load(file)


@cache
def _listed(rows: Path, stamp: tuple[int, int]) -> dict[str, str]:
    return {name: one.study for one in tables(rows).values() for name in one.runs}


@cache
def _indexed(file: Path, stamp: tuple[int, int]) -> dict[str, str]:
    with file.open(encoding="utf-8", newline="") as lines:
        return {line["run"]: line["file"].removesuffix(SUFFIX) for line in csv.DictReader(lines)}
