"""Studies: the runs behind a figure or table, defined by a settings file."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from experiments import sealed
from experiments.runs import Planned, Store
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import final_accuracy
from wirelessfl.results.selection import NAMES
from wirelessfl.runs.targets import cost_to

Scale = Literal["smoke", "small", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
LATER = 1
"""Rank offset of further seeds: verdicts need them, but one seed of each core case comes first."""
Settings = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One curve, or one row of a table: settings run with several seeds.

    Args:
        settings: by flag name, including ``algorithm``.
        seeds: seeds to run.
        rank: order of execution; runs of lower rank run first.
    """

    settings: dict[str, Any]
    seeds: tuple[int, ...]
    rank: int

    def __getitem__(self, name: str) -> Any:
        return self.settings.get(name)

    def __contains__(self, name: object) -> bool:  # without it, `in` counts integers forever
        return name in self.settings

    def matches(self, settings: Settings) -> bool:
        """Whether it has these settings; a list holds alternatives."""
        return all(
            self[name] in value if isinstance(value, list) else self[name] == value
            for name, value in settings.items()
        )

    def with_seeds(self, seeds: Sequence[int]) -> Case:
        """The case with further seeds."""
        return replace(self, seeds=tuple(dict.fromkeys((*self.seeds, *seeds))))

    @property
    def key(self) -> str:
        """Text that cases with equal settings have in common."""
        return sealed.key(self.settings)

    @property
    def label(self) -> str:
        """Algorithm, its variant, and the number of cells, if any."""
        name = NAMES[self["algorithm"]]
        if self["option"] is not None:
            name += f" ({self['option']})"
        if self["first"] == 0:
            name += " without mitigation"
        if self["warm_start"] is not None:
            name += f", {self['warm_start']}"
        return name if self["cells"] is None else f"{name}, N = {self['cells']}"

    @cached_property
    def _first(self) -> Config:
        """The configuration of the run with the first seed."""
        flags = {k: v for k, v in self.settings.items() if k != "algorithm"}
        return Config.from_flags(self["algorithm"], **flags, seed=self.seeds[0])

    @cached_property
    def _configs(self) -> dict[int, Config]:
        """The configurations of the runs that were asked for, by seed."""
        return {self.seeds[0]: self._first}

    def config(self, seed: int) -> Config:
        """The configuration of the run with this seed."""
        if seed not in self._configs:
            self._configs[seed] = self._first.with_run({"seed": seed})
        return self._configs[seed]

    @property
    def command(self) -> str:
        """The command that repeats the run with the first seed."""
        words = [
            f"--{name.replace('_', '-')} {_word(value)}"
            for name, value in self.settings.items()
            if name not in ("algorithm", "data_dir", "task")
        ]
        words += [f"--task {_table_word(table)}" for table in self["task"] or ()]
        return f"wirelessfl run {self['algorithm']} {' '.join(words)} --seed {self.seeds[0]}"


@dataclass(frozen=True)
class Study:
    """All cases of one figure or table at one scale.

    Args:
        name: name of its settings file.
        cases: its cases.
        parts: the studies that it joins, see ``joined``.
    """

    name: str
    cases: tuple[Case, ...]
    parts: tuple[Study, ...] = ()

    @classmethod
    def load(
        cls,
        file: Path,
        scale: Scale,
        data_dir: Path | None = None,
        complete: Callable[[Settings, Scale], Settings] = lambda settings, scale: settings,
    ) -> Study:
        """Load the study defined by a settings file.

        Each ``[[further]]`` of the file adds ``seeds`` to the cases of scale ``small`` with the
        settings ``where``, of which a list holds alternatives.

        Args:
            file: its path; its stem is the name of the study. ``common.toml`` in the same folder,
                if present, holds settings shared by all studies of the folder.
            scale: size of the runs.
            data_dir: folder of the data sets.
            complete: adds settings that depend on several others to those of a case.
        """
        text = tomllib.loads(file.read_text(encoding="utf-8"))
        shared = file.with_name("common.toml")
        common: Settings = {}
        both = [shared, file] if shared.is_file() else [file]
        for tables in (tomllib.loads(path.read_text(encoding="utf-8")) for path in both):
            common |= tables.get("settings", {}) | tables.get("scale", {}).get(scale, {})
        cases: list[Case] = []
        for grid in text["grid"]:
            if scale not in grid.get("scales", SCALES):
                continue
            grid_settings = {k: v for k, v in grid.items() if k not in ("scales", *SCALES)}
            settings = common | grid_settings | grid.get(scale, {})
            if data_dir is not None:
                settings["data_dir"] = data_dir
            seeds, rank = tuple(settings.pop("seeds")), settings.pop("rank", 0)
            lists = [k for k, v in settings.items() if isinstance(v, list)]
            for values in itertools.product(*(settings[k] for k in lists)):
                one = complete(settings | dict(zip(lists, values, strict=True)), scale)
                cases.append(Case(one, seeds, rank))
        for more in text.get("further", []) if scale == "small" else []:
            where, seeds = more["where"], tuple(more["seeds"])
            if not any(case.matches(where) for case in cases):
                raise ConfigError(
                    f"{file}: no case has the settings {where} of [[further]]: name those of one."
                )
            cases = [c.with_seeds(seeds) if c.matches(where) else c for c in cases]
        return cls(file.stem, tuple(cases))

    @classmethod
    def joined(cls, studies: Sequence[Study]) -> Study:
        """Several studies as one; of cases with the same settings, only the last remains."""
        by_settings = {case.key: case for study in studies for case in study.cases}
        name = "+".join(study.name for study in studies)
        return cls(name, tuple(by_settings.values()), tuple(studies))

    def planned(self) -> list[Planned]:
        """Every run, with its label and rank."""
        return [
            Planned(
                f"{self.name}: {case.label}, seed {seed}",
                case.config(seed),
                case.rank + (LATER if place else 0),
            )
            for case in self.cases
            for place, seed in enumerate(case.seeds)
        ]

    def results(self, store: Store) -> Results:
        """The stored runs of this study.

        Only configurations of cases that are not in its sealed table are resolved.
        """
        if self.parts:
            return Results.joined([one.results(store) for one in self.parts])
        table = sealed.table(store.rows, self.name)
        algorithms: set[str] | None = None
        by_case: dict[int, list[StoredRun]] = {}
        for i, case in enumerate(self.cases):
            names = None if table is None else table.places(case.settings, case.seeds)
            if names is None:
                algorithms = store.algorithms() if algorithms is None else algorithms
                stored = case["algorithm"] in algorithms  # otherwise there is nothing to resolve
                by_case[i] = store.found(case.config(case.seeds[0]), case.seeds) if stored else []
            else:
                runs = (store.run(name, study) for name, study in names)
                by_case[i] = [run for run in runs if run is not None]
        return Results(self, by_case)


@dataclass(frozen=True, eq=False)  # hashable, so that what is computed from it can be kept
class Results:
    """The finished runs of a study, by case.

    Args:
        study: the study.
        runs: its runs, by place of the case.
        used: receives the runs that ``of`` returns, by key of the case; None to keep no record.
    """

    study: Study
    runs: dict[int, list[StoredRun]]
    used: dict[str, list[StoredRun]] | None = None

    @classmethod
    def joined(cls, several: Sequence[Results]) -> Results:
        """The runs of several studies as one, see ``Study.joined``."""
        study = Study.joined([one.study for one in several])
        pairs = (
            (case.key, one.runs[i]) for one in several for i, case in enumerate(one.study.cases)
        )
        runs = dict(pairs)
        by_case = {i: runs[case.key] for i, case in enumerate(study.cases)}
        return cls(study, by_case, several[0].used)

    def of(self, case: Case) -> list[StoredRun]:
        """The stored runs of a case, by seed."""
        runs = self.runs[self.study.cases.index(case)]
        if self.used is not None:
            self.used[case.key] = runs
        return runs

    def rows(self, case: Case) -> list[list[dict[str, Any]]]:
        """The rows of each finished seed."""
        return [run.rows for run in self.of(case)]

    def finals(self, case: Case) -> list[float]:
        """The final accuracy of each finished seed, in percent."""
        return [final_accuracy(rows) for rows in self.rows(case)]

    def costs(self, case: Case, quantity: str, target: float, tests: int = 1) -> list[float | None]:
        """For each finished seed, ``quantity`` when ``target`` is first reached; None if it is not.

        Args:
            case: a case of the study.
            quantity: a field of rows.
            target: accuracy in [0, 1].
            tests: see ``cost_to``.
        """
        costs = [cost_to(rows, target, tests).of(quantity) for rows in self.rows(case)]
        return [until.cost if until.reached else None for until in costs]

    def where(self, **settings: Any) -> list[Case]:
        """Cases with these settings and at least one finished run, see ``Case.matches``."""
        return [
            case
            for i, case in enumerate(self.study.cases)
            if self.runs[i] and case.matches(settings)
        ]

    def values(self, name: str) -> list[Any]:
        """The distinct values of a setting over the cases with finished runs, in order."""
        return list(dict.fromkeys(case[name] for case in self.where()))

    @property
    def outdated(self) -> list[str]:
        """Cases with runs of an older version of the results."""
        return [
            f"{case.label} ({_described(case)})"
            for i, case in enumerate(self.study.cases)
            if not all(run.current for run in self.runs[i])
        ]

    @property
    def missing(self) -> list[str]:
        """Cases with missing seeds."""
        return [
            f"{case.label} ({_described(case)}), {len(case.seeds) - len(self.runs[i])} of "
            f"{len(case.seeds)} seeds"
            for i, case in enumerate(self.study.cases)
            if len(self.runs[i]) < len(case.seeds)
        ]


def _word(value: Any) -> str:
    """A value in command-line form."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _table_word(table: Settings) -> str:
    """A task's table in command-line form."""
    words = [f"{k.replace('_', '-')}={_word(v)}" for k, v in table.items() if k != "dataset"]
    return ",".join([table["dataset"], *words])


def _described(case: Case) -> str:
    shown = ("split", "lr", "mask_sizes", "partition", "dropout", "hidden_biases")
    shown += ("uplink", "snr_db", "clients", "convention", "beamformer")
    shown += (
        "dataset",
        "alpha",
        "clients_per_round",
        "tracking_clients",
        "local_steps",
        "edge_rounds",
        "beta2",
    )
    shown += ("schedule", "requests", "buffer", "first")
    shown += ("overlap", "similarity", "similarity_scale", "trial_rounds", "history")
    shown += ("history_keep", "distillation")
    shown += (
        "select",
        "threshold",
        "capacities",
        "budget",
        "masks",
        "min_coverage",
        "deadline",
        "shards",
        "model",
    )
    settings = [f"{name} {case[name]}" for name in shown if case[name] is not None]
    return ", ".join([*map(_task_described, case["task"] or ()), *settings])


def _task_described(table: Settings) -> str:
    share = table.get("clients_per_round")
    return table["name"] + ("" if share is None else f" with {share} clients per round")
