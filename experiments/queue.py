"""``python -m experiments queue``: make the missing runs of all papers, at low priority."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

try:
    import fcntl
except ImportError:  # not a POSIX system: the folder is not locked
    fcntl = None  # type: ignore[assignment]

from experiments.paper import Paper
from experiments.papers import papers
from experiments.runs import Planned, Store, identity, make_runs, remove_finished
from experiments.studies import Case, Scale
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.base.files import check_writable
from wirelessfl.base.wording import shown, suggestion
from wirelessfl.data.files import find_place
from wirelessfl.results.archive import StoredRun
from wirelessfl.runs.sweep import Failure, SweepError

GPU = (
    "hist/table2",
    "fedast/heterogeneous",
    "fadamgc/table2",
    "ra_fed/widths",
    "fedast/fig5",
    "dynamic_clients/table1",
    "hist/table1",
    "fadamgc/adaptive",
    "fadamgc/memory",
    "fadamgc/trackers",
    "fadamgc/fig3",
    "fedast/fig16",
    "fedast/higher",
    "fedast/lower",
)
"""Studies for a machine with a GPU, in order of what they decide."""
BATCH = 100
"""Runs that are executed together; then the queue is read again."""
NICE = 19


class Entry(NamedTuple):
    """A run of the queue.

    Args:
        paper: name of its paper.
        study: name of its study.
        run: the run.
        store: where its rows belong.
        earlier: another store, whose runs need not be made; None for none.
    """

    paper: str
    study: str
    run: Planned
    store: Store
    earlier: Store | None = None

    @property
    def name(self) -> str:
        """Its study as ``paper/study``."""
        return f"{self.paper}/{self.study}"


def entries(
    scale: Scale,
    into: Path | None,
    scratch: Path,
    data_dir: Path | None = None,
    names: Sequence[str] = (),
) -> list[Entry]:
    """The runs of all papers, once each, in order of rank.

    Args:
        scale: size of the runs.
        into: folder whose subfolders ``PAPER/rows`` receive rows; None for this repository's. Runs
            that are stored there, or here, are finished.
        scratch: folder of unfinished runs.
        data_dir: folder of the data sets.
        names: only these studies, as ``paper/study``, with the runs that they share with others;
            empty for all.
    """
    queued: list[Entry] = []
    choices: set[str] = set()
    for paper in papers().values():
        stores = _stores(paper, scale, into, scratch)
        studies = {f"{paper.name}/{s.name}": s for s in paper.studies(scale, data_dir) if s.cases}
        choices |= studies.keys()
        for name, study in studies.items():
            if not names or name in names:
                queued += [Entry(paper.name, study.name, run, *stores) for run in study.planned()]
    check_names(names, choices)
    return _once(sorted(queued, key=lambda entry: entry.run.rank))


def gpu_entries(
    into: Path | None, scratch: Path, data_dir: Path | None = None, names: Sequence[str] = ()
) -> tuple[list[Entry], list[str]]:
    """The runs for a machine with a GPU, by rank and then in the order of ``GPU``.

    A study runs with the published models and data, or at scale ``small`` if its data are not
    there. The arguments are those of ``entries``.

    Returns:
        The runs, and a line per study whose data are not there.
    """
    queued: list[Entry] = []
    missing = []
    check_names(names, GPU)
    for name in (one for one in GPU if not names or one in names):
        paper = papers()[name.partition("/")[0]]
        needed: set[str] = set()
        scales: tuple[Scale, ...] = ("paper", "small")
        for scale in scales:
            study = paper.study(name.partition("/")[2], scale, data_dir)
            sets = {one for case in study.cases for one in data_sets(case)}
            absent = {one for one in sets if not is_there(one, data_dir)}
            needed |= absent
            if study.cases and not absent:
                stores = _stores(paper, scale, into, scratch)
                queued += [Entry(paper.name, study.name, run, *stores) for run in study.planned()]
                break
        else:
            missing.append(f"{name} needs {' or '.join(sorted(needed))}")
    return _once(sorted(queued, key=lambda entry: entry.run.rank)), missing


def _stores(
    paper: Paper, scale: Scale, into: Path | None, scratch: Path
) -> tuple[Store, Store | None]:
    """Where a paper's rows belong, and another store whose runs need not be made; see ``Entry``."""
    rows = None if into is None else into / paper.name / "rows"
    store = Store(paper.store(scale, scratch, rows).rows, scratch)
    return store, None if into is None else paper.store(scale, scratch)


def check_names(names: Iterable[str], choices: Collection[str]) -> None:
    """Check that studies are in the queue."""
    for name in names:
        if name not in choices:
            advice = suggestion(name, choices) or " Give PAPER/STUDY, such as hist/fig6."
            raise ConfigError(f"study is {shown(name)}, which has no runs in the queue.{advice}")


def data_sets(case: Case) -> set[str]:
    """Names of the data sets that a case needs."""
    return {table["dataset"] for table in case["task"] or ()} or {case["dataset"]}


def is_there(name: str, data_dir: Path | None) -> bool:
    """Whether a data set has files; they are not read."""
    if name == "digits":
        return True
    with suppress(DataError):
        folder = find_place(name, data_dir).folder
        return folder.is_dir() and any(folder.iterdir())
    return False


def _once(queued: Iterable[Entry]) -> list[Entry]:
    """Each run of a paper once, at its first place."""
    once: dict[tuple[str, str], Entry] = {}
    for entry in queued:
        once.setdefault((entry.paper, identity(entry.run.config)), entry)
    return list(once.values())


def stored(entry: Entry) -> StoredRun | None:
    """The stored run of an entry; None if there is none, or if its file is damaged."""
    name, stores = identity(entry.run.config), (entry.store, entry.earlier)
    runs = [run for store in stores if store and (run := store.usable(name)) is not None]
    return next((run for run in runs if run.current), runs[0] if runs else None)


def finished(entry: Entry) -> bool:
    """Whether the run of an entry is stored, with today's version of the results."""
    run = stored(entry)
    return run is not None and run.current


def run_queue(every: Sequence[Entry], scratch: Path, jobs: int) -> list[Failure]:
    """Make all missing runs; can be interrupted at any moment and goes on where it was.

    It ends early if all runs of a batch fail for the same reason, as without data.

    Returns:
        The runs that failed.
    """
    check_writable(scratch, "scratch")
    with alone(scratch):
        return _run_queue(every, scratch, jobs)


@contextmanager
def alone(scratch: Path) -> Iterator[None]:
    """Lock the folder of unfinished runs; the lock ends with the process, even if it is killed."""
    scratch.mkdir(parents=True, exist_ok=True)
    with (scratch / ".lock").open("w") as file:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"scratch is {scratch}: another queue uses it. Wait until it ends, or choose "
                "another folder."
            ) from None
        yield


def _run_queue(every: Sequence[Entry], scratch: Path, jobs: int) -> list[Failure]:
    os.nice(max(0, NICE - os.nice(0)))
    failures: list[Failure] = []
    failed: set[str] = set()
    remove_finished([entry.run for entry in every if finished(entry)], scratch)
    while True:
        missing = (
            entry
            for entry in every
            if not finished(entry) and identity(entry.run.config) not in failed
        )
        todo = list(itertools.islice(missing, BATCH))
        if not todo:
            return failures
        try:
            make_runs([e.run for e in todo], [e.store.rows for e in todo], scratch, jobs=jobs)
        except SweepError as error:
            failures += error.failures
            failed |= {identity(failure.config) for failure in error.failures}
            print(error, file=sys.stderr)
            reasons = {failure.reason for failure in error.failures}
            if len(error.failures) == len(todo) > 1 and len(reasons) == 1:
                return failures
