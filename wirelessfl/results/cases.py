"""Cases: runs that differ only in their seeds, with the rows of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wirelessfl.errors import ConfigError
from wirelessfl.results.names import NAMES
from wirelessfl.results.selection import (
    check_names,
    label_text,
    order_key,
    seeds_of,
    telling,
)
from wirelessfl.runs.result import RunResult
from wirelessfl.wording import shown

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Runs of one group, and the rows of one of their models.

    Args:
        names: settings that distinguish groups, by flag name.
        values: their values.
        runs: the runs.
        task: the task whose rows are meant; None for runs of a single model.
        label: label without names of papers, e.g. "hist, cells 2".
    """

    names: tuple[str, ...]
    values: tuple[Any, ...]
    runs: tuple[RunResult, ...]
    task: str | None
    label: str

    @property
    def title(self) -> str:
        """The label in figures, with names as in papers, e.g. "HIST, cells 2"."""
        first = self.values[0] if self.names[:1] == ("algorithm",) else None
        name = NAMES.get(first) if isinstance(first, str) else None
        return self.label if name is None else self.label.replace(str(first), name, 1)

    @property
    def rows(self) -> list[list[Row]]:
        """The rows of each run."""
        return [run.rows if self.task is None else run.rows_of(self.task) for run in self.runs]

    @property
    def settings(self) -> list[Mapping[str, Any]]:
        """The settings of each run, by flag name."""
        return [run.settings_of(self.task) for run in self.runs]

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return seeds_of(self.runs)

    @property
    def notes(self) -> list[str]:
        """Why the runs may not be comparable, in one line each."""
        found = []
        if mixed := telling(self.settings):
            found.append(f"{self.label}: its runs differ in {', '.join(mixed)}, not only in seeds")
        unfinished = sum(not run.finished for run in self.runs)
        if unfinished:
            found.append(f"{self.label}: {unfinished} of {len(self.runs)} runs unfinished")
        return found


def cases_of(runs: Sequence[RunResult], by: str | Sequence[str] | None) -> list[Case]:
    """Groups of runs, one per task, in the order of their values.

    Args:
        runs: at least one run.
        by: settings that distinguish groups, by flag name; None for all in which runs differ.

    Raises:
        ConfigError: a name is unknown.
    """
    every = [run.settings for run in runs]
    if by is None:
        names = telling(every) or ["algorithm"]
    else:
        if not isinstance(by, str | list | tuple) or not all(isinstance(n, str) for n in by):
            raise ConfigError(f"by is {shown(by)}: name a setting, or a list of settings.")
        names = [by] if isinstance(by, str) else list(by)
        check_names(names, every)
        if not names:
            raise ConfigError("by is empty: name settings, or leave it out.")
    groups: dict[str, list[RunResult]] = {}
    for run in runs:
        groups.setdefault(repr([run.settings.get(name) for name in names]), []).append(run)
    found = []
    ordered = sorted(
        groups.values(), key=lambda own: [order_key(own[0].settings.get(name)) for name in names]
    )
    for own in ordered:
        values = tuple(own[0].settings.get(name) for name in names)
        label = label_text(names, values) or "runs"
        by_task: dict[str | None, list[RunResult]] = {}
        for run in own:
            several: list[str | None] = [*run.tasks] if len(run.tasks) > 1 else [None]
            for task in several:
                by_task.setdefault(task, []).append(run)
        for task, members in by_task.items():
            own_settings = members[0].settings_of(task)
            told = values if task is None else tuple(own_settings.get(name) for name in names)
            text = label if task is None else f"{label_text(names, told) or 'runs'}, {task}"
            found.append(Case(tuple(names), told, tuple(members), task, text))
    return found
