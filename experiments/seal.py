"""``python -m experiments seal``: put the runs of finished studies into one table each.

Every run of a table is compared with its file before the file is removed. A run that several
studies of a paper share lies in the table of one of them, to which the others refer.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from experiments import sealed
from experiments.papers import papers
from experiments.queue import check_names
from experiments.runs import Store, identities
from experiments.sealed import INDEX, Names, Settings, StudyTable
from experiments.studies import Study
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.results.archive import SUFFIX, StoredRun, write_compressed

Cases = list[tuple[Settings, Names]]
HEAD = ("study", "algorithm", "settings", "seed", "run", "numerics", "wirelessfl", "torch")
HEAD += ("numpy", "hardware", "seconds", "file")


def seal_all(names: Sequence[str] = ()) -> None:
    """Seal finished studies of scale ``small`` in the repository, and print a line for each.

    Args:
        names: studies as ``paper/study``; empty for all that are finished.
    """
    every = {
        paper.name: [study for study in paper.studies("small") if study.cases]
        for paper in papers().values()
    }
    check_names(names, {f"{paper}/{study.name}" for paper in every for study in every[paper]})
    for paper, studies in every.items():
        store = papers()[paper].store("small", Path("results"))
        by_study = {
            study.name: resolved(study)
            for study in studies
            if not names or f"{paper}/{study.name}" in names
        }
        if not by_study:
            continue
        waiting = {name: unfinished(cases, store) for name, cases in by_study.items()}
        for name, count in waiting.items():
            if names and count:
                raise ConfigError(
                    f"study {paper}/{name} has {count} runs that are missing or outdated: make "
                    f"them with `python -m experiments queue --study {paper}/{name}` first."
                )
        sealed_now = {name: by_study[name] for name, count in waiting.items() if not count}
        removed = seal(store, sealed_now)
        for name, count in waiting.items():
            print(f"{paper}/{name}: " + (f"{count} runs are missing" if count else "sealed"))
        print(f"{paper}: {removed} files of single runs removed", flush=True)


def resolved(study: Study) -> Cases:
    """The cases of a study with the names of their runs, from their configurations."""
    return [
        (
            {name: value for name, value in case.settings.items() if name != "data_dir"},
            dict(zip(case.seeds, identities(case.config(case.seeds[0]), case.seeds), strict=True)),
        )
        for case in study.cases
    ]


def check_cases(table: StudyTable, cases: Cases) -> None:
    """Check that a table names the runs of all its cases as their configurations do."""
    for settings, names in cases:
        for seed, name in names.items():
            old = table.names(settings, [seed])
            if old is not None and old != [name]:
                raise DataError(
                    f"the table of {table.study} has {old[0]} with seed {seed}, and its settings "
                    f"{settings} give {name}: names of runs must not change."
                )


def unfinished(cases: Cases, store: Store) -> int:
    """How many runs are missing or outdated."""
    names = {name for _, of_case in cases for name in of_case.values()}
    return sum(not store.current(name) for name in names)


def seal(store: Store, studies: Mapping[str, Cases]) -> int:
    """Write the tables of finished studies of a paper and the index, then remove single files.

    Args:
        store: where the runs are.
        studies: cases of the studies, see ``resolved``.

    Returns:
        The number of removed files.
    """
    before = sealed.tables(store.rows)
    after = {name: replace(table, runs=dict(table.runs)) for name, table in before.items()}
    owners = {name: table.study for table in after.values() for name in table.runs}
    planned = []
    for study, cases in studies.items():
        if "-" in study:
            raise ConfigError(f"study is {study!r}: its name has a hyphen, like those of runs.")
        old = after.get(study, StudyTable(study, [], {}, {}))
        check_cases(old, cases)
        names = list(dict.fromkeys(name for _, of_case in cases for name in of_case.values()))
        planned += names
        owned = [name for name in names if owners.setdefault(name, study) == study]
        others = {name: owners[name] for name in names if owners[name] != study}
        runs = {name: old.runs.get(name, {}) for name in owned} | old.runs
        after[study] = StudyTable(study, cases, runs, others)
        for name in names:
            run = store.run(name)
            assert run is not None
            after[owners[name]].runs[name] = run.content()
    for study, table in after.items():
        if study not in before or _text(table.content()) != _text(before[study].content()):
            _write(store, table)
    _write_index(store.rows)
    return sum(_remove(store, name) for name in dict.fromkeys(planned))


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def same(one: StoredRun, other: StoredRun) -> bool:
    """Whether two runs are equal in all fields, rows and their order, and the types of values."""
    head, rows = ("settings", "about", "machine", "seconds"), (one.rows, other.rows)
    first, second = ([_text(getattr(run, name)) for name in head] for run in (one, other))
    return first == second and json.dumps(rows[0]) == json.dumps(rows[1])


def _write(store: Store, table: StudyTable) -> None:
    """Write a table, once what was written is equal to the runs as they are stored now."""
    file = store.rows / (table.study + SUFFIX)
    draft = file.with_name(f".{table.study}.new")
    try:
        write_compressed(draft, table.content())
        read = StudyTable.load(draft)
        check_cases(read, table.cases)
        for name in table.runs:
            _check_equal(store, name, read.run(name))
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _check_equal(store: Store, name: str, run: StoredRun | None) -> None:
    stored = store.run(name)
    if stored is None or run is None or not same(stored, run):
        raise DataError(f"{store.file(name)} differs from its sealed copy: nothing was removed.")


def _remove(store: Store, name: str) -> bool:
    """Remove the single file of a sealed run, once more compared with its table."""
    file = store.file(name)
    if not file.is_file():
        return False
    _check_equal(store, name, sealed.run(store.rows, name))
    file.unlink()
    return True


def index_of(tables: Mapping[str, StudyTable]) -> str:
    """The index of the runs of some tables as CSV: one line per study and run.

    ``settings`` are those that tell the cases of a study, ``file`` is the table with the run.
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEAD)
    for study, table in tables.items():
        shared = sealed.shared_settings([{"": settings} for settings, _ in table.cases])[""]
        listed = {
            name: ", ".join(
                f"{k}={v if isinstance(v, str) else json.dumps(v)}"
                for k, v in settings.items()
                if k not in shared and k != "algorithm"
            )
            for settings, names in table.cases
            for name in names.values()
        }
        for name in listed | dict.fromkeys(table.runs, ""):  # some may be in no case any more
            place = table.elsewhere.get(name, study)
            run = tables[place].runs[name]
            about, settings = run["about"], run["settings"]
            lines.writerow(
                (
                    *(study, name.rpartition("-")[0], listed.get(name, "")),
                    *(settings["run"]["seed"], name),
                    *(about.get(key) for key in ("numerics", "wirelessfl", "torch", "numpy")),
                    *(about.get("device_name"), run["seconds"], place + SUFFIX),
                )
            )
    return text.getvalue()


def _write_index(rows: Path) -> None:
    tables = sealed.tables(rows)
    file, text = rows / INDEX, index_of(tables)
    if tables and not (file.is_file() and file.read_text(encoding="utf-8") == text):
        draft = file.with_name(f".{INDEX}.new")
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
