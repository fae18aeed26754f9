"""What a run consists of: choices by kind, its regime, presets of published methods, and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

from wirelessfl.air.compression import DOWNLINK_COMPRESSIONS, UPLINK_COMPRESSIONS, Compression
from wirelessfl.air.delays import DELAYS, DelayModel
from wirelessfl.air.failures import FAILURES, Failures
from wirelessfl.air.radio import (
    FADINGS,
    LAYOUTS,
    MOBILITIES,
    PATH_LOSSES,
    FadingModel,
    LayoutModel,
    MobilityModel,
    PathLossModel,
)
from wirelessfl.air.recharge import RECHARGES, Recharge
from wirelessfl.air.uplinks import UPLINKS, Uplink
from wirelessfl.algorithms import Algorithm, HFedAvg, Method, assigner_of, rule_of
from wirelessfl.algorithms.assigners import ASSIGNERS, Assigner
from wirelessfl.algorithms.step_sizes import STEP_SIZES, StepSizes
from wirelessfl.algorithms.warm_starts import WARM_STARTS, WarmStart
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.registry import Kind
from wirelessfl.base.wording import shown
from wirelessfl.data.choice import DATASETS, DatasetChoice
from wirelessfl.data.files import dataset_title
from wirelessfl.data.splits import DATA_SPLITS, Split
from wirelessfl.engine.assignment import ASSIGNMENTS, AssignmentRule
from wirelessfl.engine.schedules import SCHEDULES, Schedule
from wirelessfl.engine.selection import SELECTIONS, Selection
from wirelessfl.engine.sessions.presence import PRESENCES, PresenceModel
from wirelessfl.models.choice import MODEL_CHOICES, ModelChoice
from wirelessfl.models.losses import LOSSES, Loss


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The objects that a run is made of, each chosen by name and with settings of its own.

    A new kind of choice is one line here: its table, flags, help, conditions and storage follow
    from its ``Kind``. A choice that some runs do not have is None by default. If two kinds have a
    setting of the same name, the flag of the earlier kind has no prefix.

    Args:
        algorithm: client and server rule.
        dataset: the data set.
        split: data partition.
        model: the model to train.
        lr_schedule: step size of each round.
        uplink_compression: compression of the changes of the model that clients send; None for
            none.
        downlink_compression: compression of the model that clients receive; None for none.
        select: which clients take part in a round; None in runs of tasks and of asynchronous cells.
        layout: where cells and clients are; None without a radio channel or if it is recorded.
        path_loss: path loss; None without positions.
        fading: fading of the radio channel; None without one or if it is recorded.
        mobility: how clients move; None if they stand still.
        uplink: multiple access of the clients.
        failures: uploads that fail; None without uploads in packets, and in runs of tasks.
        schedule: when clients get work and servers merge.
        delays: latency of requests; None without requests to clients.
        assignment: assignment of clients to tasks; None without rounds of several tasks.
        warm_start: initial model of a session; None without sessions.
        presence: which clients are present; None without sessions.
        loss: loss of a sample.
        assigner: who trains which neurons; None for full models, and if the algorithm brings its
            own assigner.
        recharge: what recharges batteries; None without batteries.
    """

    algorithm: Method
    dataset: Annotated[DatasetChoice, DATASETS]
    split: Annotated[Split, DATA_SPLITS]
    model: Annotated[ModelChoice, MODEL_CHOICES]
    lr_schedule: Annotated[StepSizes, STEP_SIZES]
    uplink_compression: Annotated[Compression | None, UPLINK_COMPRESSIONS] = None
    downlink_compression: Annotated[Compression | None, DOWNLINK_COMPRESSIONS] = None
    select: Annotated[Selection | None, SELECTIONS] = None
    layout: Annotated[LayoutModel | None, LAYOUTS] = None
    path_loss: Annotated[PathLossModel | None, PATH_LOSSES] = None
    fading: Annotated[FadingModel | None, FADINGS] = None
    mobility: Annotated[MobilityModel | None, MOBILITIES] = None
    uplink: Annotated[Uplink, UPLINKS]
    failures: Annotated[Failures | None, FAILURES] = None
    schedule: Annotated[Schedule, SCHEDULES]
    delays: Annotated[DelayModel | None, DELAYS] = None
    assignment: Annotated[AssignmentRule | None, ASSIGNMENTS] = None
    warm_start: Annotated[WarmStart | None, WARM_STARTS] = None
    presence: Annotated[PresenceModel | None, PRESENCES] = None
    loss: Annotated[Loss, LOSSES]
    assigner: Annotated[Assigner | None, ASSIGNERS] = None
    recharge: Annotated[Recharge | None, RECHARGES] = None

    @property
    def rule(self) -> Algorithm:
        """The rules of the clients and of the servers that they report to."""
        return rule_of(self.algorithm)

    @property
    def hierarchical(self) -> bool:
        """Whether there are edge servers between clients and cloud."""
        return isinstance(self.algorithm, HFedAvg)

    @property
    def used_assigner(self) -> Assigner:
        """Who trains which neurons: the chosen assigner, or that of the algorithm."""
        return self.assigner or assigner_of(self.algorithm)


KINDS: Mapping[str, Kind[Any]] = {
    name: kind
    for name, hint in get_type_hints(Choices, include_extras=True).items()
    for kind in getattr(hint, "__metadata__", ())
}
"""Tables with a ``name``, besides ``algorithm``."""
CHOSEN = ("algorithm", *KINDS)
"""All tables with a ``name``."""
DEFAULTS = {name: kind.default for name, kind in KINDS.items() if kind.default}
"""Default names. The algorithm determines the defaults of schedule and assignment."""
OPTIONAL = ("assigner", "mobility", "uplink_compression", "downlink_compression", "recharge")
"""Kinds without a table if the default is chosen."""


class Regime(StrEnum):
    """What a run consists of.

    Code asks for the facts below, not for a regime. What needs an object for each regime, the
    builders, has a table of them: ``runs/build/building.py``.
    """

    ROUNDS = "rounds"
    """Rounds of one model."""
    SESSIONS = "sessions"
    """Sessions of such rounds, between which clients join and leave."""
    TASKS = "tasks"
    """Requests to clients, or rounds shared by tasks."""
    CELLS = "cells"
    """Rounds of cells, which the cloud merges asynchronously."""

    @property
    def common_rounds(self) -> bool:
        """Whether the run is one sequence of rounds of one model at all nodes."""
        return self is Regime.ROUNDS

    @property
    def synchronous(self) -> bool:
        """Whether the order of the merges of a model does not depend on seconds."""
        return self in (Regime.ROUNDS, Regime.SESSIONS)

    @property
    def in_sessions(self) -> bool:
        """Whether clients join and leave between sessions, which count their own rounds."""
        return self is Regime.SESSIONS

    @property
    def of_tasks(self) -> bool:
        """Whether clients get work for one of several tasks, which can depend on accuracies."""
        return self is Regime.TASKS

    @property
    def merges_cells(self) -> bool:
        """Whether the cloud merges cells asynchronously, so that each has its own round."""
        return self is Regime.CELLS


@dataclass(frozen=True)
class Preset:
    """Defaults that the name of an algorithm implies; settings override them.

    Args:
        schedule: name of the schedule.
        settings: settings of the schedule that differ from its defaults.
        assignment: name of the assignment rule, used in rounds of several tasks.
    """

    schedule: str = "rounds"
    settings: Mapping[str, Any] = field(default_factory=dict)
    assignment: str = "random"


PRESETS: Mapping[str, Preset] = {
    "fedast": Preset("buffered"),
    "fedast-nobuffer": Preset("buffered", {"buffer": 1, "fixed_buffer": True}),
    "fedasync": Preset("buffered", {"buffer": 1, "fixed_buffer": True}),
    "fedbuff": Preset("buffered", {"buffer": 10}),
    "sync-st": Preset("simultaneous", {"first": 30}),
    "sync-bayes-st": Preset("simultaneous", {"first": 30}, "bayes"),
    "sync-ucb-st": Preset("simultaneous", {"first": 30}, "bandit"),
}
"""Presets by algorithm; all other algorithms train one model in synchronous rounds by default."""


def preset_of(algorithm: str) -> Preset:
    """The defaults that the name of an algorithm implies."""
    return PRESETS.get(algorithm, Preset())


def check_local(table: Mapping[str, Any]) -> None:
    """Refuse an algorithm inside cells whose name implies another schedule than ``rounds``.

    Args:
        table: the table of the algorithm.

    Raises:
        ConfigError: the algorithm's name implies such a schedule.
    """
    local = table.get("local", "")
    if local in PRESETS:
        raise ConfigError(
            f'local is "{local}", which implies schedule "{PRESETS[local].schedule}", but the '
            f'cells of algorithm "{table["name"]}" have synchronous edge rounds. Choose a '
            "synchronous algorithm, such as fedavg."
        )


TASK_SETTINGS = {
    "data": ["validation_fraction", "augment"],
    "network": ["step_seconds", "cycles_per_step", "cycles_per_flop"],
    "training": [
        *("local_steps", "local_epochs", "batch_size", "rounds", "clients_per_round", "weighting"),
        "precision",
    ],
    "evaluation": ["target", "metric", "monitor"],
    "run": ["executor", "chunk", "replay", "workers"],
}
"""Settings that a task's table may override, by section, besides choices and their settings."""
TASK_CHOICES = ("dataset", "split", "model", "algorithm", "loss")
"""Kinds of choices that a task's table may override."""
ENDLESS = 10**9
"""Value of ``rounds`` that means unlimited, for tasks that end at a time limit or a target."""


def parse_task(words: str) -> dict[str, Any]:
    """The table of ``--task mnist,model=mlp,target=0.93``.

    The first word is the data set. A later word without = is a further entry of the previous value.

    Raises:
        ConfigError: the words cannot be parsed.
    """
    table: dict[str, Any] = {}
    last = ""
    wrong = ConfigError(
        f"task is {words!r}: give DATASET,setting=value,..., such as mnist,model=mlp,target=0.93."
    )
    for place, word in enumerate(words.split(",")):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not name:
            raise wrong
        if not equals and place == 0:
            name, value = "dataset", name
        elif not equals:
            before = table[last]
            table[last] = (*before, name) if isinstance(before, tuple) else (before, name)
            continue
        name = name.replace("-", "_")
        if not value:
            raise wrong
        if name in table:
            raise ConfigError(f"task is {words!r}: it sets {name} twice. Remove one.")
        table[name], last = value, name
    return table


def task_names(tables: Iterable[Mapping[str, Any]], default: str) -> list[str]:
    """Names of the tasks: the ``name`` of a table or its data set, numbered if already taken.

    Raises:
        ConfigError: two tables have the same ``name``, or a name is not a string.
    """
    names: list[str] = []
    for table in tables:
        key = "name" if "name" in table else "dataset"
        title = table.get(key, default)
        if not isinstance(title, str) or not title:
            raise ConfigError(
                f"{key} of a task is {shown(title)}: give a string. On the command line settings "
                "follow the data set as name=value: --task digits,lr=0.1."
            )
        if key == "name" and title in names:
            raise ConfigError(f"two tasks are called {title!r}: give them different names.")
        title = title if key == "name" else dataset_title(title)
        name, number = title, 2
        while name in names:
            name, number = f"{title}-{number}", number + 1
        names.append(name)
    return names
