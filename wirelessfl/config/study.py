"""What is studied: settings of data, model and network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from wirelessfl.config.section import Section
from wirelessfl.uplinks.base import Coherence


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
    if not isinstance(listed, list | tuple) or not all(isinstance(entry, str) for entry in listed):
        return given
    return tuple(name.strip() for entry in listed for name in entry.split(","))


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
