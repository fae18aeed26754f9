"""The runs of all figures: each is executed once and shared by the figures that need it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console as Terminal

from experiments import sealed
from wirelessfl.base.errors import DataError
from wirelessfl.cli.output import sweep_progress
from wirelessfl.config import Config
from wirelessfl.observers import Console
from wirelessfl.results.archive import SUFFIX, StoredRun
from wirelessfl.runs import kept
from wirelessfl.runs.folder.about import NUMERICS
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.run import resume
from wirelessfl.runs.sweep import sweep


class Planned(NamedTuple):
    """A planned run.

    Args:
        label: shown next to its progress bar.
        config: its settings.
        rank: runs of lower rank run first.
    """

    label: str
    config: Config
    rank: int = 0


def identity(config: Config) -> str:
    """Name of the run with these settings, see ``wirelessfl.runs.folder.identity``."""
    return kept.kept_name(_executed(config))


def identities(config: Config, seeds: Iterable[int]) -> list[str]:
    """The names of the runs with these seeds."""
    base = config.run.seed
    return [identity(config if seed == base else config.with_run({"seed": seed})) for seed in seeds]


def stored_file(config: Config, rows: Path) -> Path:
    """The file of the run with these settings."""
    return rows / (identity(config) + SUFFIX)


def _executed(config: Config) -> Config:
    """The settings with which a planned run is executed: it uses one CPU thread."""
    return config.with_run({"threads": 1})


def kept_run(label: str, root: Path, algorithm: str, **flags: Any) -> RunResult:
    """The run with these settings: read from disk, resumed, or run.

    Args:
        label: shown next to the progress bar.
        root: folder of all runs.
        algorithm: name of the algorithm.
        flags: settings by flag name.
    """
    config = Config.from_flags(algorithm, **flags)
    bars = Console(Terminal(stderr=True), label, lines=False)
    return kept.kept_run(config, root, observers=[bars])


@dataclass(frozen=True)
class Store:
    """Where the finished runs of a paper are stored: one file each, or in a table of their study.

    If a run has both, its own file counts: it is newer.

    Args:
        rows: folder of files of runs, see ``wirelessfl.results.archive``, and of sealed tables, see
            ``experiments.sealed``.
        scratch: folder of unfinished runs.
    """

    rows: Path
    scratch: Path

    def missing(self, planned: Iterable[Planned]) -> list[Planned]:
        """The runs without a file of today's version of the results, once each, by rank."""
        by_name: dict[str, Planned] = {}
        for run in sorted(planned, key=lambda run: run.rank):
            by_name.setdefault(identity(run.config), run)
        return [run for name, run in by_name.items() if not self.current(name)]

    def file(self, name: str) -> Path:
        """The file of a run that is in no table."""
        return self.rows / (name + SUFFIX)

    def run(self, name: str, study: str | None = None) -> StoredRun | None:
        """The run with this name; None if it is not stored.

        Args:
            name: its name.
            study: study whose sealed table has it; None to look it up in the index of the tables.
        """
        file = self.file(name)
        return StoredRun.load(file) if file.is_file() else sealed.run(self.rows, name, study)

    def usable(self, name: str) -> StoredRun | None:
        """The run with this name; None also if its own file is damaged: it is made again."""
        if self.file(name).is_file():
            with suppress(DataError):
                return StoredRun.load(self.file(name))
        return sealed.run(self.rows, name)

    def current(self, name: str) -> bool:
        """Whether the run with this name is stored, with today's version of the results."""
        run = self.usable(name)
        return run is not None and run.current

    def make(self, planned: Iterable[Planned], *, jobs: int = 1, ray: str | None = None) -> None:
        """Execute the missing runs, in order of rank.

        Args:
            planned: the runs; runs with equal settings are executed once.
            jobs: number of local processes.
            ray: address of a Ray cluster, or ``local``.
        """
        every = list(planned)
        todo = self.missing(every)
        missing = {identity(run.config) for run in todo}
        remove_finished([run for run in every if identity(run.config) not in missing], self.scratch)
        make_runs(todo, [self.rows] * len(todo), self.scratch, jobs=jobs, ray=ray)

    def algorithms(self) -> set[str]:
        """Algorithms with stored runs."""
        return {name.rpartition("-")[0] for name in self.names()}

    def names(self) -> list[str]:
        """The names of all stored runs."""
        single = {file.name.removesuffix(SUFFIX) for file in self.rows.glob(sealed.SINGLE)}
        return sorted(single | sealed.places(self.rows).keys())

    def found(self, config: Config, seeds: Iterable[int] | None = None) -> list[StoredRun]:
        """The stored runs of a configuration.

        Args:
            config: the settings.
            seeds: their seeds, one run each; None for the seed of the configuration.
        """
        names = identities(config, [config.run.seed] if seeds is None else seeds)
        return [run for name in names if (run := self.run(name)) is not None]


def make_runs(
    todo: Sequence[Planned],
    rows: Sequence[Path],
    scratch: Path,
    *,
    jobs: int = 1,
    ray: str | None = None,
) -> None:
    """Execute runs, in this order; each uses one CPU thread.

    A run is stored as soon as it has finished. Interrupted runs go on from their last checkpoints.

    Args:
        todo: the runs; papers may share a run, which is executed once and stored for each of them.
        rows: folder of the file of each run.
        scratch: folder of unfinished runs.
        jobs: number of local processes.
        ray: address of a Ray cluster, or ``local``.
    """
    configs = [_executed(run.config) for run in todo]
    folders = [folder_of(run, scratch) for run in todo]
    for folder in folders:
        if (folder / "about.json").is_file() and numerics_of(folder) != NUMERICS:
            shutil.rmtree(folder, ignore_errors=True)  # another version started it

    done: set[Path] = set()

    def keep(place: int) -> None:
        run = StoredRun.of(resume(folders[place], trust=configs[place].code))
        for folder, one, to in zip(folders, todo, rows, strict=True):
            if folder == folders[place]:
                run.save(stored_file(one.config, to))
        done.add(folders[place])

    labels = [(run.label, run.config.total_rounds) for run in todo]
    try:
        with sweep_progress(labels, Terminal(stderr=True)) as show:
            options = {"jobs": jobs, "ray": ray, "train_all": True}  # rows of a claim are trained
            sweep(configs, scratch, **options, on_row=show, on_end=keep)
    finally:
        for folder in done:
            shutil.rmtree(folder, ignore_errors=True)


def folder_of(run: Planned, scratch: Path) -> Path:
    """Folder of an unfinished run."""
    return kept.kept_folder(_executed(run.config), scratch)


def remove_finished(finished: Iterable[Planned], scratch: Path) -> None:
    """Remove folders of runs that have been stored, but were left by an interrupted process."""
    if any(scratch.glob("*/")):
        for run in finished:
            shutil.rmtree(folder_of(run, scratch), ignore_errors=True)


def numerics_of(folder: Path) -> int:
    """Version of the results of the run in a folder."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return int(about["numerics"])
