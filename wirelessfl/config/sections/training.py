"""Settings of training, samples, evaluation and sessions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from wirelessfl.algorithms.algorithm import moments
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import absolute
from wirelessfl.base.needs import CELLS, COHORTS, ROUNDS, SAMPLED, SESSIONS, Needs, beside, without
from wirelessfl.base.wording import shown
from wirelessfl.config.sections.section import Section, frozen
from wirelessfl.engine.schedules import Rounds

UNSAMPLED = Needs(
    lambda run, _: not run.regime.of_tasks or run.schedule.work != "requests",
    'conflicts with schedule "{run.schedule.title}", which does not sample clients: set requests, '
    'or choose schedule "rounds"',
)
TRACKING = (
    Needs(
        lambda run, _: run.schedule.work == "rounds",
        'conflicts with schedule "{run.schedule.title}", under which every client that trains '
        'sends tracking terms: choose schedule "rounds"',
    ),
    Needs(
        lambda run, _: any(p.senders == "tracking" for p in run.settings.rule.payloads),
        'conflicts with algorithm "{run.title}", which has no tracking terms: choose '
        "fadamgc, fa-nt, scaffold or scaffold-m",
    ),
)


def _some_late(run: Any, _: Any) -> bool:
    """Whether an update may miss a cut-off: packets are sent again, or there is no deadline."""
    failures = run.settings.failures
    again = failures is not None and failures.repeats and not failures.never
    return again or run.settings.uplink.deadline_seconds is None


LATE = (
    Needs(
        lambda run, _: run.uplink.gives != "sum",
        'conflicts with uplink "{run.uplink.title}", over which the clients of a cell send at the '
        'same time: choose uplink "tdma", "ofdma" or "fixed"',
    ),
    Needs(
        _some_late,
        "conflicts with round_deadline={run.settings.uplink.deadline_seconds:g}, which all "
        "updates meet: choose one of them",
    ),
)
COMPRESSED = Needs(
    lambda run, _: run.settings.uplink_compression is not None,
    "needs uplink_compression: set it",
)
MEAN = Needs(
    lambda run, _: any(payload.mean for payload in run.settings.rule.payloads),
    'conflicts with algorithm "{run.title}", which does not merge by a mean',
)


def _per_client(value: Any) -> Any:
    """Check joules, LOW,HIGH or devices, also as on the command line."""
    if value is None or value == "devices":
        return value
    parts = value.split(",") if isinstance(value, str) else value
    try:
        joules = [float(part) for part in (parts if isinstance(parts, list | tuple) else [parts])]
    except (TypeError, ValueError):
        joules = []
    if not (0 < len(joules) < 3 and 0 < joules[0] <= joules[-1] < math.inf):
        raise ValueError(
            f"{shown(value)} cannot be used: give joules > 0, 0 < LOW <= HIGH as LOW,HIGH, or "
            '"devices", the joules of the batteries in the table of devices'
        )
    return joules[0] if len(joules) == 1 else tuple(joules)


PerClient = Annotated[
    float | tuple[float, float] | Literal["devices"], BeforeValidator(_per_client)
]
"""Joules of each client: the same for all, uniformly at random, or those of its device."""
WITHOUT_SESSIONS = Needs(
    lambda run, _: run.sessions is None,
    "conflicts with sessions, whose clients join and leave: leave one of them out",
)


FOR_AVAILABLE = (
    WITHOUT_SESSIONS,
    Needs(
        lambda run, _: run.schedule.work != "task rounds",
        'conflicts with schedule "{run.schedule.title}", which draws available clients for each '
        'round: set availability, or choose schedule "rounds" or "buffered"',
    ),
    Needs(
        lambda run, _: run.schedule.work == "rounds" or run.local or run.uplink.gives != "sum",
        'conflicts with uplink "{run.uplink.title}" under schedule "{run.schedule.title}", whose '
        'clients wait for each other to send: choose uplink "tdma", "ofdma" or "fixed"',
    ),
)
"""What a trace of available clients needs."""


@frozen
class TrainingSection(Section):
    """Numbers of rounds and local steps, batch size, sampled clients and their weights."""

    local_steps: Annotated[
        int,
        without(
            "local_epochs",
            ", which gives each client its own number of steps: choose one of them",
        ),
    ] = Field(20, ge=1, le=10**9, description="H, mini-batch steps per edge round")
    local_epochs: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="passes of each client over its samples (default: none)",
    )
    edge_rounds: Annotated[int | None, CELLS] = Field(
        None, ge=1, description="E, edge rounds per global round (default: 5)"
    )
    rounds: int = Field(
        30,
        ge=1,
        description="T, global rounds (per session), or merges per task (default: 30 rounds, or "
        "the same number of updates; unlimited for tasks with --max-seconds or --target)",
    )
    max_seconds: float | None = Field(
        None, gt=0, description="limit on simulated seconds (default: none)"
    )
    batch_size: int = Field(50, ge=1, description="samples per mini-batch")
    clients_per_round: Annotated[int | None, UNSAMPLED, SAMPLED] = Field(
        None, ge=1, description="S, clients sampled per round (default: all)"
    )
    tracking_clients: Annotated[int | None, TRACKING] = Field(
        None,
        ge=1,
        description="clients that update and send tracking terms (default: all)",
    )
    cutoff_seconds: Annotated[float | None, LATE] = Field(
        None,
        gt=0,
        description="end of an edge round or request without late updates, s (default: none)",
    )
    client_joules: Annotated[PerClient | None, ROUNDS] = Field(
        None,
        description="energy budget of each client, J, LOW,HIGH or devices (default: no limit)",
    )
    battery_joules: Annotated[PerClient | None, COHORTS, WITHOUT_SESSIONS] = Field(
        None,
        description="energy of each full battery, J, LOW,HIGH or devices (default: no batteries)",
    )
    on_empty: Annotated[Literal["wait", "drop"], beside("battery_joules")] = Field(
        "wait",
        description="clients whose batteries hold too little: wait, or drop out",
    )
    error_feedback: Annotated[bool, COMPRESSED] = Field(
        False, description="clients add what compression left out of an upload to their next one"
    )
    availability_trace: Annotated[Path | None, FOR_AVAILABLE] = Field(
        None,
        description="CSV file of when clients are available: client, join, leave (default: always)",
    )
    availability_unit: Annotated[Literal["seconds", "rounds"], beside("availability_trace")] = (
        Field("seconds", description="unit of the times of availability_trace")
    )
    availability_period: Annotated[float | None, beside("availability_trace")] = Field(
        None, gt=0, description="time after which availability_trace repeats (default: never)"
    )
    weighting: Annotated[Literal["uniform", "samples"], MEAN] = Field(
        "uniform", description="weights of clients and cells in averages"
    )
    precision: Literal["float32", "tf32", "bf16"] = Field(
        "float32",
        description="of products and convolutions in local training: float32; tf32 (GPUs); bf16 "
        "(GPUs, and CPUs with AVX512-BF16 or AMX)",
    )


SPLIT = Needs(
    lambda run, _: run.settings.given.split is None,
    "conflicts with split=..., which assigns samples to clients: choose one of them",
)

AUGMENT = Needs(
    lambda run, _: run.settings.given.augment is None,
    "conflicts with augment=..., which is given to wirelessfl.run: choose one of them",
)


@frozen
class DataSection(Section):
    """Where the data are, validation samples, and random changes of training samples."""

    data_dir: Path | None = Field(
        None,
        description="folder of the data sets (default: $WIRELESSFL_DATA, or a cache)",
    )
    validation_fraction: Annotated[float, SPLIT] = Field(
        0.0,
        ge=0,
        lt=1,
        description="fraction of training data held out for validation",
    )
    # An absolute path, since a run may be resumed from another working directory.
    augment: Annotated[str | None, AUGMENT, AfterValidator(absolute)] = Field(
        None,
        description="function f(x, generator) that changes the samples of each training batch at "
        "random, module:function (default: none)",
    )


WITHIN = Needs(
    lambda run, _: run.schedule.work != "rounds",
    'conflicts with schedule "{run.schedule.title}", which evaluates after whole rounds: choose '
    'eval_every or schedule "buffered"',
)
FIRST = (
    SESSIONS[1],
    Needs(
        lambda run, owner: (owner.eval_every or 1) > 1,
        "conflicts with eval_every=1, which evaluates every round: raise eval_every",
    ),
)
SAME_LABELS = Needs(
    lambda run, _: run.sessions is None,
    "conflicts with sessions, which test other labels in each session",
)
STOP = (
    SAME_LABELS,
    Needs(
        lambda run, _: not run.regime.of_tasks,
        'conflicts with schedule "{run.schedule.title}", under which a task always ends at its '
        "target",
    ),
    beside("target"),
)


def listed(value: Any) -> Any:
    """Parse a list, or a comma-separated string, of names; return other values unchanged."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return value
    parts = (absolute(part.strip()) for name in names for part in name.split(","))
    return tuple(dict.fromkeys(name for name in parts if name)) or value


def _field(monitor: str | None) -> str | None:
    """The field of rows, macro_f1, of the metric macro-f1."""
    return None if monitor is None else monitor.replace("-", "_")


@frozen
class EvaluationSection(Section):
    """When models are evaluated, what is measured, and the target."""

    eval_every: int | None = Field(
        None,
        ge=1,
        description="rounds or merges between evaluations (default: 1 round or 20 merges)",
    )
    eval_seconds: Annotated[float | None, WITHIN] = Field(
        None,
        ge=1e-6,
        description="simulated seconds between evaluations (default: none)",
    )
    eval_first: Annotated[int, FIRST] = Field(
        0,
        ge=0,
        description="rounds at the start of each session that are always evaluated",
    )
    eval_samples: int | None = Field(
        None,
        ge=1,
        description="test samples that are evaluated, a sample drawn once by the seed (default: "
        "all, also if there are fewer)",
    )
    target: float | None = Field(
        None,
        description="target accuracy (on validation samples, if any), or value of --monitor: the "
        "summary reports the cost of reaching it, and a task ends when it reaches it",
    )
    stop_at_target: Annotated[bool, STOP] = Field(
        False,
        description="end the run with the first evaluation that reaches the target",
    )
    metric: Annotated[tuple[str, ...] | None, BeforeValidator(listed)] = Field(
        None,
        description="further metrics of rows, e.g. macro-f1,my_module:my_metric",
    )
    monitor: Annotated[str | None, AfterValidator(_field)] = Field(
        None,
        description="field of rows that the target refers to (default: accuracy)",
    )
    patience: Annotated[int | None, SAME_LABELS] = Field(
        None,
        ge=1,
        description="evaluations without improvement until the end (default: never)",
    )
    min_delta: Annotated[float, SAME_LABELS, beside("patience")] = Field(
        0.0, ge=0, description="smallest change that counts as an improvement"
    )

    def __post_init__(self) -> None:
        """Check a target that is an accuracy."""
        accuracy = self.monitor is None or self.monitor.endswith("accuracy")
        if self.target is not None and accuracy and not 0 < self.target <= 1:
            fraction = f" ({self.target / 100:g} for {self.target:g} %)" if self.target > 1 else ""
            raise ConfigError(
                f"target is {self.target:g}: give a number > 0 and <= 1{fraction}, or name the "
                "field that it refers to by monitor."
            )


BUILT_IN = Needs(
    lambda run, _: run.schedule is Rounds,
    'conflicts with schedule "{run.schedule.title}", which does not support sessions: choose '
    'schedule "rounds"',
)


MEMORY = Needs(
    lambda run, _: moments(run.settings.rule),
    'conflicts with algorithm "{run.title}", whose server has no momentum or moments: choose '
    "fedacg, fedadam or another algorithm with server state",
)


@frozen
class SessionsSection(Section):
    """Sessions of ``rounds`` rounds each; clients join and leave between them."""

    sessions: Annotated[int | None, SESSIONS[0], BUILT_IN] = Field(
        None, ge=1, description="S, number of sessions of --rounds rounds (default: none)"
    )
    tested_labels: Annotated[Literal["present", "all"], SESSIONS[1]] = Field(
        "present", description="test samples: only labels of present clients, or all"
    )
    server_momentum: Annotated[Literal["reset", "keep"], SESSIONS, MEMORY] = Field(
        "reset",
        description="momentum and moments of the server when a session begins: reset, or keep",
    )
