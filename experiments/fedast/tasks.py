"""The tasks of the FedAST paper: their constants, and the task tables of a study's cases.

A grid of a study has ``tasks`` (data sets), ``copies`` of each, and the ``level`` of their targets
(``main``, ``higher`` or ``lower`` of Table 3, or ``none`` to train without targets). Optional keys
are ``shares``, clients per round of each task in Sync-ST; ``ratio``, R / b if R is swept; and
``central``, steps of SGD on the pooled data instead of federated training. At scale smoke, every
data set is replaced by digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.studies import Case, Settings
from wirelessfl.air.delays import PUBLISHED_STEP_SECONDS

LEVELS = ("lower", "main", "higher")
Goal = str | Mapping[str, float] | None
"""Targets: a level of Table 3, or accuracies in [0, 1] by data set. Other data sets, or all if this
is None, have the targets of their runs or, without these, those of the main text."""


@dataclass(frozen=True)
class Task:
    """Settings for training on a data set (Section 5.1, Appendix C.5).

    Args:
        model: name of the model.
        lr: eta_c of asynchronous methods.
        weight_decay: weight decay of asynchronous methods.
        targets: accuracies of Table 3 in [0, 1], in the order of ``LEVELS``.
        sync_lr: eta_c of synchronous methods; None for the same as asynchronous methods.
        sync_weight_decay: weight decay of synchronous methods; None for the same.
        data: the data split and the range of pixels.
        settings: settings that differ from those of the other data sets.
        buffer: b of FedAST if not 3.
    """

    model: str
    lr: float
    weight_decay: float
    targets: tuple[float, float, float]
    sync_lr: float | None = None
    sync_weight_decay: float | None = None
    data: tuple[tuple[str, Any], ...] = (
        ("split", "dirichlet"),
        ("alpha", 0.1),
        ("samples_per_client", 300),
        ("reuse", True),
        ("pixels", "standard"),
    )
    settings: tuple[tuple[str, Any], ...] = ()
    buffer: int | None = None


TASKS = {
    "mnist": Task("mlp", 0.1, 3e-4, (0.83, 0.93, 0.96), sync_lr=0.2),
    "fashion-mnist": Task("lenet5", 0.06, 3e-4, (0.72, 0.82, 0.85)),
    "cifar10": Task("fedast-cnn", 0.1, 7e-4, (0.53, 0.63, 0.66), sync_weight_decay=3e-4),
    # The weight decay of the released code; the text has 7e-5.
    "shakespeare": Task(
        "lstm",
        7.0,
        1e-5,
        (0.32, 0.42, 0.45),
        data=(("split", "natural"), ("reuse", True)),
        settings=(("batch_size", 64),),
        buffer=6,
    ),
    # The paper gives no weight decay; this is that of Fashion-MNIST, which has the same lr.
    "cifar100": Task(
        "resnet18",
        0.06,
        3e-4,
        (0.5, 0.5, 0.5),
        data=(
            ("split", "dirichlet"),
            ("alpha", 1.0),
            ("samples_per_client", 300),
            ("reuse", True),
            ("pixels", "standard"),
        ),
        settings=(("local_steps", 5),),
    ),
    # Scale smoke.
    "digits": Task(
        "fcnn",
        0.1,
        3e-4,
        (0.3, 0.4, 0.6),
        data=(
            ("split", "dirichlet"),
            ("alpha", 1.0),
            ("samples_per_client", 30),
            ("reuse", True),
            ("pixels", "unit"),
        ),
    ),
}
SHOWN = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "shakespeare": "Shakespeare",
}
ASYNCHRONOUS = ("fedast", "fedast-nobuffer")
SYNCHRONOUS = ("sync-st", "sync-bayes-st", "sync-ucb-st")
ONLY = {
    "requests": ASYNCHRONOUS,
    "buffer": ("fedast",),
    "server_lr": ("fedast",),
    "period": ("fedast",),
    "availability": SYNCHRONOUS,
    "first": SYNCHRONOUS,
}
"""Settings of a study that apply only to these methods; the others ignore them."""
CENTRAL_STEPS = 100
"""Steps between evaluations of centralised training."""


def complete(settings: Settings, scale: str) -> Settings:
    """Convert a study's settings to a run's: names, copies and levels become task tables."""
    settings = dict(settings)
    kinds, copies, level, shares, ratio, central = (
        settings.pop(name, default)
        for name, default in (
            ("tasks", ()),
            ("copies", 1),
            ("level", "main"),
            ("shares", None),
            ("ratio", None),
            ("central", None),
        )
    )
    method = settings["algorithm"]
    if ratio is not None and method == "fedast":
        settings["buffer"] = max(round(settings["requests"] / ratio), 1)
    settings = {k: v for k, v in settings.items() if method in ONLY.get(k, (method,))}
    if settings.get("option") != "D":
        settings.pop("period", None)
    names = [f"{kind}-{i + 1}" if i else kind for kind in kinds for i in range(copies)]
    tables = [_table(name, settings, level, scale) for name in names]
    for table, share in zip(tables, shares or [None] * len(tables), strict=True):
        if share is not None:
            table["clients_per_round"] = share
    settings["task"] = tuple(tables)
    return settings if central is None else _centralised(settings, central)


def _table(name: str, settings: Settings, level: str, scale: str) -> dict[str, Any]:
    """The table of a task, by its name."""
    kind = kind_of(name)
    dataset = "digits" if scale == "smoke" else kind
    task = TASKS[dataset]
    lr, decay = task.lr, task.weight_decay
    if settings["algorithm"] not in ASYNCHRONOUS:
        lr = lr if task.sync_lr is None else task.sync_lr
        decay = decay if task.sync_weight_decay is None else task.sync_weight_decay
    table: dict[str, Any] = {"name": name, "dataset": dataset, "model": task.model, "lr": lr}
    table |= {"weight_decay": decay, **dict(task.data), **dict(task.settings)}
    if level != "none":
        table["target"] = task.targets[LEVELS.index(level)]
    if settings.get("buffer") == 3 and task.buffer is not None:
        table["buffer"] = task.buffer
    if dataset == "digits":
        table["step_seconds"] = PUBLISHED_STEP_SECONDS[kind] / 2
    return table


def _centralised(settings: Settings, steps: int) -> Settings:
    """SGD on the pooled data: one client that has all samples and always participates."""
    (table,) = settings["task"]
    kept = (
        "name",
        "dataset",
        "model",
        "lr",
        "weight_decay",
        "batch_size",
        "pixels",
        "step_seconds",
    )
    settings = {k: v for k, v in settings.items() if k not in ("eval_seconds", "max_seconds")}
    rounds = max(round(steps / CENTRAL_STEPS), 1)
    return settings | {
        "task": ({k: v for k, v in table.items() if k in kept} | {"split": "iid"},),
        "clients": 1,
        "availability": 1.0,
        "first": 0,
        "local_steps": CENTRAL_STEPS,
        "rounds": rounds,
        "eval_every": max(rounds // 20, 1),
    }


def kind_of(name: str) -> str:
    """The data set in a task's name."""
    return re.sub(r"-\d+$", "", name)


def names(case: Case) -> list[str]:
    """Names of a case's tasks."""
    return [table["name"] for table in case["task"]]


def kinds(case: Case) -> tuple[str, ...]:
    """The distinct data sets of a case's tasks."""
    return tuple(dict.fromkeys(map(kind_of, names(case))))


def title(case: Case, name: str) -> str:
    """The data set that a task trains on; at scale smoke, also that which digits replace."""
    kind = kind_of(name)
    table = next(table for table in case["task"] if kind_of(table["name"]) == kind)
    return SHOWN[kind] if table["dataset"] == kind else f"digits for {SHOWN[kind]}"


def target(case: Case, name: str, goal: Goal = None) -> float:
    """The target of a task, see ``Goal``."""
    table = next(table for table in case["task"] if table["name"] == name)
    dataset = table["dataset"]
    if isinstance(goal, Mapping) and dataset in goal:
        return goal[dataset]
    published = TASKS[dataset].targets[LEVELS.index(goal if isinstance(goal, str) else "main")]
    return float(published if isinstance(goal, str) else table.get("target", published))


def targets(case: Case, goal: Goal = None) -> str:
    """The targets of a case's tasks, as in ``targets: MNIST 93 %, Fashion-MNIST 82 %``."""
    goals = {title(case, name): target(case, name, goal) for name in names(case)}
    listing = ", ".join(f"{kind} {100 * accuracy:.0f} %" for kind, accuracy in goals.items())
    return f"target{'s' if len(goals) > 1 else ''}: {listing}"


def shares(case: Case) -> tuple[int, ...] | None:
    """Clients per round of each task; None unless all are set."""
    clients = tuple(table.get("clients_per_round") for table in case["task"])
    return None if None in clients else clients


def is_central(case: Case) -> bool:
    """Whether the case is centralised training."""
    return bool(case["clients"] == 1)


def label(case: Case) -> str:
    """Label of a method in tables and figures."""
    if is_central(case):
        return "centralised"
    clients = shares(case)
    return case.label + ("" if clients is None else f" ({'/'.join(map(str, clients))})")
