"""The stored runs of a paper, and their values by seed, from which claims are tested."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from experiments.paper import Paper
from experiments.runs import Store
from experiments.studies import Case, Results, Scale
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import final_accuracy
from wirelessfl.results.intervals import Costs
from wirelessfl.runs.targets import cost_to

T = TypeVar("T")


@dataclass(frozen=True)
class Evidence:
    """The stored runs of a paper.

    Args:
        paper: the paper.
        store: where its runs are.
        scale: scale of its studies.
        read: the studies that have been read, by name.
        tables: texts of the tables that have been made, by experiment.
        used: the runs that measures have asked for, by key of the case.
    """

    paper: Paper
    store: Store
    scale: Scale = "small"
    read: dict[str, Results] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    used: dict[str, list[StoredRun]] = field(default_factory=dict)

    @classmethod
    def of(cls, paper: Paper) -> Evidence:
        """The runs of scale ``small`` that are stored in the repository."""
        return cls(paper, paper.store("small", Path("results")))

    def study(self, name: str | tuple[str, ...]) -> Results:
        """The stored runs of a study, or of several studies as one."""
        if isinstance(name, tuple):
            return Results.joined([self.study(one) for one in name])
        if name not in self.read:
            results = self.paper.study(name, self.scale).results(self.store)
            self.read[name] = replace(results, used=self.used)
        return self.read[name]

    @property
    def seconds(self) -> float:
        """How long a further seed of all cases in ``used`` would take."""
        return sum(
            statistics.mean(run.seconds for run in runs) for runs in self.used.values() if runs
        )

    @cached_property
    def numbers(self) -> dict[str, str]:
        """The numbers in the sentences of its pages, by name."""
        return self.paper.numbers(self)

    def table(self, name: str) -> str:
        """The table of an experiment or text; empty without runs."""
        if name not in self.tables and name in self.paper.texts:
            self.tables[name] = self.paper.texts[name]()
        if name not in self.tables:
            experiment = self.paper.experiments[name]
            results = self.study(experiment.study)
            self.tables[name] = experiment.table(results) if results.where() else ""
        return self.tables[name]


def by_seed(results: Results, of: Callable[[StoredRun], T], **settings: Any) -> dict[int, T]:
    """``of`` (a function of a stored run) by seed, for the only case with these settings.

    Returns:
        Empty if no such case is stored.
    """
    cases = results.where(**settings)
    if len(cases) > 1:
        raise ValueError(f"{len(cases)} cases of {results.study.name} have {settings}: give more.")
    return {run.seed: of(run) for case in cases for run in results.of(case)}


def final_by_seed(results: Results, case: Case) -> dict[int, float]:
    """The final accuracy of each run of a case by seed, in percent."""
    return {run.seed: final(run) for run in results.of(case)}


def differences(more: Mapping[int, float], less: Mapping[int, float]) -> dict[int, float]:
    """Values by seed minus others, for the seeds that both have."""
    return {seed: more[seed] - less[seed] for seed in more if seed in less}


def mean_by_seed(rows: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean of several values by seed, for the seeds that all of them have."""
    seeds = sorted(set.intersection(*map(set, rows))) if rows else []
    return {seed: statistics.mean(row[seed] for row in rows) for seed in seeds}


def costs_by_seed(runs: Iterable[StoredRun], accuracy: float, quantity: str) -> Costs:
    """The cost of each of these runs until a target by seed; their seeds differ."""
    return {run.seed: cost_to(run.rows, accuracy).of(quantity) for run in runs}


def final(run: StoredRun) -> float:
    """The final accuracy of a run, in percent."""
    return final_accuracy(run.rows)
