"""The sections of a configuration: every setting of a run but those of algorithm and uplink."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from wirelessfl.errors import ConfigError
from wirelessfl.uplinks.base import Coherence


class Section(BaseModel):
    """A table of settings: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_yes_or_no(cls, given: Any) -> Any:
        for key, value in given.items() if isinstance(given, Mapping) else ():
            if key in cls.model_fields:
                refuse_bool(key, value, cls.model_fields[key].annotation)
        return given

    def filled(self, **values: Any) -> Self:
        """A copy with values that the user did not give: ``model_fields_set`` stays as it is."""
        whole = {**dict(self), **values}
        return cast(Self, type(self).model_construct(set(self.model_fields_set), **whole))


class DataSection(Section):
    """What is learnt from."""

    dataset: str = Field("digits", description="data set, see `wirelessfl list`")
    data_dir: Path | None = Field(
        None,
        description="folder with one folder a data set (default: $WIRELESSFL_DATA, or a cache)",
    )
    split: Literal[
        "noniid",
        "cell-iid",
        "dirichlet",
        "iid",
        "two-shard",
        "half",
        "partial-overlap",
        "distinct",
        "natural",
    ] = Field(
        "noniid",
        description="how samples are dealt to clients; two-shard, half, partial-overlap and "
        "distinct say which labels each holds",
    )
    alpha: float = Field(0.5, gt=0, description="parameter of the Dirichlet split")
    shards: int = Field(2, ge=1, description="label shards a client, in noniid and cell-iid")
    min_samples: int = Field(1, ge=1, description="least samples of a client, in dirichlet")
    samples_per_client: int | None = Field(
        None, ge=1, description="samples of every client, in iid and dirichlet (default: all dealt)"
    )
    reuse: bool = Field(
        False,
        description="with --samples-per-client, use samples again where they run out; with --split "
        "natural, groups",
    )
    pixels: Literal["signed", "unit", "standard"] = Field(
        "signed",
        description="scale of images: [-1, 1] (signed), [0, 1] (unit), or mean 0 and variance 1 a "
        "channel over the training set (standard)",
    )
    tokenizer: str | None = Field(
        None,
        description="tokenizer of texts, a name on the hub or a folder (default: --pretrained's)",
    )
    max_length: int | None = Field(
        None, ge=1, description="tokens that a text is cut or padded to (default: 128)"
    )


def _names(given: Any) -> Any:
    """Names in a list, or in a text between commas."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(own, str) for own in listed):
        return given
    return tuple(name.strip() for own in listed for name in own.split(","))


class ModelSection(Section):
    """What is learnt."""

    model: str = Field("fcnn", description="model, see `wirelessfl list`, or module:callable")
    dropout: float = Field(0.0, ge=0, lt=1, description="probability after hidden layers")
    hidden: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(
        None,
        description="widths of the hidden layers, e.g. 300,100 (fcnn, mlp, lstm; default: the "
        "model's own)",
    )
    norm: Literal["group", "batch"] | None = Field(
        None,
        description="normalisation of resnet18: group (its default), or batch, by the statistics "
        "of each batch, also in evaluation",
    )
    layers: Annotated[tuple[str, ...] | None, BeforeValidator(_names)] = Field(
        None, description="fully connected layers in order, e.g. fc1,fc2 (default: the model's own)"
    )
    pretrained: str | None = Field(
        None, description="base of gpt2-lora, a name on the hub or a folder (default: gpt2)"
    )
    lora_rank: int | None = Field(
        None, ge=1, description="rank of the LoRA adapters (gpt2-lora; default: 64)"
    )
    lora_alpha: float | None = Field(
        None, gt=0, description="LoRA adapters are scaled by this over the rank (default: the rank)"
    )


class NetworkSection(Section):
    """Cells, clients and their radio; the defaults are those of Section VI-C of the HIST paper."""

    cells: int | None = Field(None, ge=1, description="cells (default: 4, or 1 for a star)")
    clients: int = Field(60, ge=1, description="clients in all cells together")
    bandwidth_hz: float = Field(9e6, gt=0, description="bandwidth of a cell, in Hz")
    antennas: int = Field(10, ge=1, le=1024, description="antennas of an edge server")
    fading: Literal["rayleigh", "rician"] = Field("rayleigh", description="block fading")
    rician_k_db: float = Field(6.0, description="Rician K factor, in dB")
    antenna_correlation: float = Field(
        0.0, ge=0, lt=1, description="correlation of neighbouring antennas"
    )
    snr_db: float | None = Field(
        None, description="transmit SNR of all clients, in dB (default: 30 and 40 by half)"
    )
    cpu_hz: tuple[float, float] | None = Field(
        None, description="range LOW,HIGH of CPU speeds, in Hz (default: 1-2 and 2-4 GHz by half)"
    )
    coherence: Coherence | None = Field(
        None, description="how long a channel draw lasts (default: round, the uplink's own)"
    )
    cycles_per_step: float = Field(1e6, gt=0, description="CPU cycles of a full-model step")
    step_seconds: float | None = Field(
        None,
        gt=0,
        description="seconds of a full-model step of every client, instead of cycles over CPU "
        "speed (default: cycles)",
    )
    transmit_power_w: float = Field(0.1, gt=0, description="transmit power of a client, in W")
    switched_capacitance: float = Field(
        1e-28, ge=0, description="kappa of kappa f^2 joules a cycle"
    )
    path_gain_db: tuple[float, float] | None = Field(
        None,
        description="range LOW,HIGH of mean channel powers, in dB, e.g. --path-gain-db=-20,20 "
        "(default: 0)",
    )
    delays: Literal["wireless", "shifted-exponential"] | None = Field(
        None,
        description="of algorithms for several tasks, how long a training takes: cycles and a "
        "shared band, or one draw for all of it (default: wireless)",
    )
    delay_scale: float = Field(
        0.5,
        gt=0,
        description="of shifted-exponential: seconds a unit of the published relative step times, "
        "where --step-seconds does not say beta itself",
    )
    availability: float = Field(
        1.0, gt=0, le=1, description="random share of the clients that takes new work at any time"
    )
    busy_clients: int | None = Field(
        None,
        ge=1,
        description="most clients with work at a time, of asynchronous requests; others go to them",
    )
    drop_out: float = Field(
        0.0, ge=0, lt=1, description="probability that a client drops out of a training"
    )
    downlink_mbps: float | None = Field(
        None, gt=0, description="rate to each client, in Mbit/s (default: takes no time)"
    )
    backhaul_mbps: float | None = Field(
        None, gt=0, description="rate edge server to cloud, in Mbit/s (default: takes no time)"
    )


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


PLACES = ("out", "data_dir")
"""Settings that say where things are, and do not tell runs apart."""
FOR_TASKS = {
    "network": ("delays", "delay_scale", "availability", "busy_clients", "drop_out"),
    "evaluation": ("eval_seconds",),
}
"""Settings of algorithms for several tasks."""
SECTIONS: dict[str, type[Section]] = {
    "data": DataSection,
    "model": ModelSection,
    "network": NetworkSection,
    "training": TrainingSection,
    "sessions": SessionsSection,
    "evaluation": EvaluationSection,
    "run": RunSection,
}


def refuse_bool(key: str, value: Any, annotation: Any) -> None:
    """Refuse True for a number, though Python counts it as 1."""
    if isinstance(value, bool) and "bool" not in str(annotation):
        raise ConfigError(f"{key} is {value}: it does not accept true/false.")
