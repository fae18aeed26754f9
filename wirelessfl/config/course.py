"""How a run goes: settings of training, sessions and evaluation, and of where it is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from wirelessfl.config.section import Section


class TrainingSection(Section):
    """How long and in what steps."""

    local_steps: int = Field(20, ge=1, description="H, mini-batch steps an edge round")
    edge_rounds: int | None = Field(
        None, ge=1, description="E, edge rounds a global round (default: 5, or 1 for a star)"
    )
    rounds: int = Field(
        30,
        ge=1,
        description="T, global rounds, in sessions those of each; of several tasks, merges of "
        "each (there no limit, where --max-seconds or targets end the run)",
    )
    max_seconds: float | None = Field(
        None, gt=0, description="simulated seconds after which a run ends (default: none)"
    )
    batch_size: int = Field(50, ge=1, description="samples a mini-batch")
    clients_per_round: int | None = Field(
        None, ge=1, description="S, clients that train in a round, in all cells (default: all)"
    )
    tracking_clients: int | None = Field(
        None,
        ge=1,
        description="of these, who updates and sends its tracking term (default: all of them)",
    )
    weighting: Literal["uniform", "samples"] = Field(
        "uniform", description="weights of clients and cells in means"
    )
    lr_schedule: Literal["constant", "poly"] = Field(
        "constant",
        description="step sizes of the clients: constant, or falling within each session (a run "
        "without sessions is one) by lr ((1 - ratio) (1 - t/T)^power + ratio)",
    )
    compression: Literal["none", "top-k", "quantisation"] = Field(
        "none",
        description="of the model on its way to the clients: its largest elements, or a few bits "
        "an element by stochastic rounding",
    )
    compression_keep: float = Field(
        0.1, gt=0, le=1, description="of top-k: share of the elements that are sent"
    )
    compression_bits: int = Field(
        8, ge=2, le=16, description="of quantisation: bits an element, its sign included"
    )
    lr_ratio: float = Field(0.0, ge=0, le=1, description="of poly: least step size over --lr")
    lr_power: float = Field(0.9, gt=0, description="of poly: the exponent")


class SessionsSection(Section):
    """Clients that come and go: sessions of --rounds rounds, and who is there in each."""

    sessions: int | None = Field(
        None, ge=1, description="S, sessions of --rounds rounds each (default: none)"
    )
    presence: Literal["labels", "arrivals", "trace"] = Field(
        "labels",
        description="who is there: groups of clients with label sets of their own in turn "
        "(labels), random arrivals and stays (arrivals), or as recorded (trace)",
    )
    overlap: float = Field(
        0.0, ge=0, le=1, description="of labels: share that the sets of two sessions in turn share"
    )
    shared_labels: Literal["split", "both"] = Field(
        "split",
        description="samples of labels in both sets: half for each, or all of them for both",
    )
    unseen_labels: int = Field(
        0, ge=0, description="labels of a third group, there in the last session only"
    )
    arrival_rate: float | None = Field(
        None, gt=0, description="of arrivals: clients that arrive per --presence-unit"
    )
    mean_stay: float | None = Field(
        None, gt=0, description="of arrivals: mean of the exponential stays, in --presence-unit"
    )
    initially_present: int | None = Field(
        None,
        ge=0,
        description="of arrivals: clients there at first (default: rate times mean stay)",
    )
    trace: Path | None = Field(
        None, description="of trace: CSV file with the columns client, join, leave"
    )
    presence_unit: Literal["seconds", "rounds"] = Field(
        "seconds", description="unit of times, of arrivals and trace"
    )
    tested_labels: Literal["present", "all"] = Field(
        "present", description="test samples: those with labels of clients who are there, or all"
    )


class EvaluationSection(Section):
    """When the model is tested."""

    eval_every: int | None = Field(
        None,
        ge=1,
        description="global rounds, or merges of a task, between rows (default: 1, but 20 where "
        "updates come one by one; none with --eval-seconds)",
    )
    eval_seconds: float | None = Field(
        None, gt=0, description="simulated seconds between rows, of algorithms for several tasks"
    )
    eval_first: int = Field(
        0, ge=0, description="of sessions: so many first rounds of each have a row every round"
    )
    target: float | None = Field(
        None,
        gt=0,
        le=1,
        description="accuracy whose cost the closing table gives; one of several tasks ends there",
    )


def _count_or(word: str, unit: str, largest: int | None = None) -> BeforeValidator:
    """Reads a count of ``unit`` or ``word``, so that one message names both kinds of value."""
    limit = "1 or more" if largest is None else f"1 to {largest}"

    def check(given: Any) -> Any:
        if given is None or given == word:
            return given
        try:
            number = int(given)
        except (TypeError, ValueError):
            number = 0
        fraction = isinstance(given, float) and number != given
        if fraction or not 1 <= number <= (largest or number):
            raise ValueError(f"{given!r} is not a number of {unit}: give {limit}, or {word}")
        return number

    return BeforeValidator(check)


class RunSection(Section):
    """Where it is computed, and where the results go."""

    seed: int = Field(1, ge=0, description="seed of all randomness")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    executor: Literal["auto", "stacked", "vmap", "loop"] = Field(
        "auto",
        description="chains of layers together (stacked), any model together (vmap), or one client "
        "after the other for debugging (loop)",
    )
    chunk: Annotated[int | Literal["tune"] | None, _count_or("tune", "clients")] = Field(
        None,
        description="clients that train at once, or tune: the fastest, by a short timing (default: "
        "by the size of the model; a timing may change the last bits of the results)",
    )
    padding: float | None = Field(
        None,
        ge=0,
        le=1,
        description="of clients with submodels of their own, share of padding in what trains at "
        "once; 0: equal widths only (default: by measurement, see docs/performance.md)",
    )
    replay: Literal["on", "off"] | None = Field(
        None,
        description="record local steps once and replay them without the model's own Python code "
        "(default: on for GPUs and for long runs of executor vmap; off with --lr-schedule poly)",
    )
    workers: Annotated[int | Literal["auto"] | None, _count_or("auto", "processes", 1024)] = Field(
        None,
        description="CPU processes that train, or auto (default: auto on the command line, where "
        "long runs get one per core; 1 from Python); results do not depend on it",
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="CPU threads of each process (default: 1)"
    )
    checkpoint_seconds: float = Field(
        5.0, ge=0, description="minimum wall-clock seconds between checkpoints; 0 saves every round"
    )
    client_states: Literal["auto", "memory", "disk"] = Field(
        "auto",
        description="where what clients keep between rounds is held: host memory, or the run's "
        "folder (auto: by size)",
    )
    out: Path | None = Field(None, description="folder of the run (default: a new one in runs/)")
