"""Selection of stored runs by settings, and groups of them.

Cases are runs that differ only in their seeds, with the rows of one model. Rows say a run's final
accuracy, and where it reaches a target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import short
from wirelessfl.base.wording import name_and_unit, shown, suggestion
from wirelessfl.config.sections import PLACES
from wirelessfl.config.stored import is_setting, plain
from wirelessfl.results import archive
from wirelessfl.results.given_networks import network_note, settings_of
from wirelessfl.runs.result import RunResult

MACHINE = (*archive.MACHINE, "padding", "client_states")
"""Settings that say where and how a run is computed, not what."""
PLAIN = ("algorithm", "model", "dataset")
"""Settings whose values need no name in a label."""
FIRST = ("algorithm", "local", "dataset", "model", "split", "uplink", "schedule")
"""Settings that come first among those that differ."""
HERTZ = ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"))


def matches(value: Any, choice: Any) -> bool:
    """Whether a setting has a wanted value, or one of those in a list or set."""
    if plain(choice) == value:
        return True
    values = choice if isinstance(choice, list | set | frozenset | range) else ()
    return any(plain(entry) == value for entry in values)


def check_names(names: Iterable[str], settings_of_runs: Iterable[Mapping[str, Any]]) -> None:
    """Refuse names that are neither settings of runs nor known flags."""
    flags = list(dict.fromkeys(key for run in settings_of_runs for key in run))
    for name in names:
        if name not in flags and not is_setting(name):
            raise ConfigError(
                f"unknown setting {name!r}.{suggestion(name, flags)} Name settings as their flags, "
                "such as algorithm, cells or lr."
            )


def check_types(settings: Mapping[str, Any], settings_of_runs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse strings for settings that are numbers: they would select nothing."""
    for name, choice in settings.items():
        values = [run[name] for run in settings_of_runs if run.get(name) is not None]
        numbers = values and all(isinstance(value, int | float) for value in values)
        if isinstance(choice, str) and numbers:
            raise ConfigError(
                f"{name} is {choice!r}, a string, but runs have numbers such as {values[0]}: give "
                "a number."
            )


def varied(settings_of_runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Settings in which runs differ, except seeds, paths, and how runs are computed."""
    ignored = {"seed", *PLACES, *MACHINE}
    names = dict.fromkeys([*FIRST, *(key for run in settings_of_runs for key in run)])
    return [
        name
        for name in names
        if name not in ignored
        and any(
            settings.get(name) != settings_of_runs[0].get(name) for settings in settings_of_runs
        )
    ]


def telling(settings_of_runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first settings that tell all groups of equal settings apart; others follow from them."""
    needed: list[str] = []
    groups: list[Any] = [None] * len(settings_of_runs)
    for name in varied(settings_of_runs):
        finer = [
            (group, repr(s.get(name))) for group, s in zip(groups, settings_of_runs, strict=True)
        ]
        if len(set(finer)) > len(set(groups)):
            needed.append(name)
            groups = finer
    return needed


def value_text(value: Any) -> str:
    """A value of a setting in a table; a dash for a setting without effect."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(entry) for entry in value)
    return short(value) if isinstance(value, str) else str(value)


def order_key(value: Any) -> tuple[int, float, str]:
    """A key that orders values of a setting: none, numbers by size, others by their text."""
    if isinstance(value, int | float):
        return 1, float(value), ""
    return (0, 0.0, "") if value is None else (2, 0.0, str(value))


def named_value(name: str, value: Any) -> str:
    """A setting and its value in a label, e.g. "cells 2" or "bandwidth 20 MHz"."""
    text, unit = name_and_unit(name)
    if not unit or isinstance(value, bool) or not isinstance(value, int | float):
        return f"{text} {value_text(value)}"
    scale, unit = next((of for of in HERTZ if unit == "Hz" and value >= of[0]), (1.0, unit))
    return f"{text} {value / scale:g} {unit}"


def label_text(names: Sequence[str], values: Sequence[Any]) -> str:
    """The label of a group, e.g. "hist, cells 2"."""
    words = [
        value_text(value) if name in PLAIN else named_value(name, value)
        for name, value in zip(names, values, strict=True)
        if value is not None
    ]
    return ", ".join(words)


def seeds_of(runs: Iterable[RunResult]) -> list[int]:
    """The seeds of runs, in order."""
    return [int(run.settings["seed"]) for run in runs]


NAMES = {
    "fa-nt": "FA-NT",
    "fadamgc": "FAdamGC",
    "fedacg": "FedACG",
    "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam",
    "fedams": "FedAMS",
    "fedast": "FedAST",
    "fedast-nobuffer": "FedAST-NoBuffer",
    "fedasync": "FedAsync",
    "fedavg": "FedAvg",
    "fedavg-m": "FedAvg-M",
    "fedavg-small": "FedAvg-small",
    "fedbuff": "FedBuff",
    "fedprox": "FedProx",
    "fedrolex": "FedRolex",
    "fedyogi": "FedYogi",
    "heterofl": "HeteroFL",
    "hfedavg": "HFedAvg",
    "hist": "HIST",
    "local-adam": "LocalAdam",
    "moon": "MOON",
    "ra-fed": "RA-Fed",
    "ram-fed": "RAM-Fed",
    "scaffold": "SCAFFOLD",
    "scaffold-m": "SCAFFOLD-M",
    "sync-bayes-st": "Sync-Bayes-ST",
    "sync-st": "Sync-ST",
    "sync-ucb-st": "Sync-UCB-ST",
}
"""Names of the algorithms, as in their papers."""
DATA = {
    "ag-news": "AG News",
    "cifar10": "CIFAR-10",
    "cifar10-jpeg": "CIFAR-10 (JPEG copy)",
    "cifar100": "CIFAR-100",
    "digits": "digits",
    "fashion-mnist": "Fashion-MNIST",
    "mnist": "MNIST",
    "svhn": "SVHN",
    "tinyimagenet": "TinyImageNet",
    "20newsgroups": "20 Newsgroups",
    "qnli": "QNLI",
    "qqp": "QQP",
    "sst2": "SST-2",
    "shakespeare": "Shakespeare",
}
"""Names of the data sets in figures and tables."""
MODELS = {
    "fcnn": "FCNN",
    "mlp": "MLP",
    "lenet5": "LeNet-5",
    "gn-cnn": "CNN with group norm",
    "cnn": "CNN",
    "linear": "linear model",
    "text-mean": "mean of embeddings",
}
UPLINKS = {"tdma": "OMA", "aircomp": "AirComp"}
"""Names of uplinks: orthogonal multiple access is TDMA."""


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
        return [settings_of(run, self.task) for run in self.runs]

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return seeds_of(self.runs)

    @property
    def repeated_seeds(self) -> list[int]:
        """Seeds that several of the runs have."""
        return [seed for seed, number in Counter(self.seeds).items() if number > 1]

    @property
    def notes(self) -> list[str]:
        """Why the runs may not be comparable, in one line each."""
        notes = []
        if mixed := telling(self.settings):
            notes.append(f"{self.label}: its runs differ in {', '.join(mixed)}, not only in seeds")
        if differing := network_note(self.runs):
            notes.append(f"{self.label}: {differing}")
        if self.repeated_seeds and not notes:
            seeds = ", ".join(map(str, self.repeated_seeds))
            notes.append(f"{self.label}: its range is not one over seeds: several have {seeds}")
        unfinished = sum(not run.finished for run in self.runs)
        if unfinished:
            notes.append(f"{self.label}: {unfinished} of {len(self.runs)} runs unfinished")
        return notes


def names_of(by: str | Sequence[str] | None, *further: str) -> list[str]:
    """Names of settings: one, several with commas as on the command line, or a list of them."""
    listed = [by] if isinstance(by, str) else by
    names: list[Any] = [*listed, *further] if isinstance(listed, list | tuple) else [by]
    if not all(isinstance(name, str) for name in names):
        raise ConfigError(f"by is {shown(by)}: name a setting, or a list of settings.")
    return [name.strip() for words in names for name in words.split(",")]


def cases_of(runs: Sequence[RunResult], by: str | Sequence[str] | None) -> list[Case]:
    """Groups of runs, one per task, in the order of their values."""
    settings_of_runs = [settings_of(run) for run in runs]
    if by is None:
        names = telling(settings_of_runs) or ["algorithm"]
    else:
        names = names_of(by)
        check_names(names, settings_of_runs)
        if not names:
            raise ConfigError("by is empty: name settings, or leave it out.")
    groups: dict[str, tuple[tuple[Any, ...], list[RunResult]]] = {}
    for run, settings in zip(runs, settings_of_runs, strict=True):
        values = tuple(settings.get(name) for name in names)
        groups.setdefault(repr(values), (values, []))[1].append(run)
    cases = []
    for values, group in sorted(groups.values(), key=lambda both: [*map(order_key, both[0])]):
        label = label_text(names, values) or "runs"
        by_task: dict[str | None, list[RunResult]] = {}
        for run in group:
            several: list[str | None] = [*run.tasks] if len(run.tasks) > 1 else [None]
            for task in several:
                by_task.setdefault(task, []).append(run)
        for task, members in by_task.items():
            own_settings = settings_of(members[0], task)
            of_task = values if task is None else tuple(own_settings.get(name) for name in names)
            text = label if task is None else f"{label_text(names, of_task) or 'runs'}, {task}"
            cases.append(Case(tuple(names), of_task, tuple(members), task, text))
    return cases
