"""Settings of the data set and its split."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from wirelessfl.config.sections.base import Section


class DataSection(Section):
    """The data set and its split."""

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
    min_samples: int = Field(
        1, ge=1, description="minimum number of samples of a client, in dirichlet"
    )
    samples_per_client: int | None = Field(
        None, ge=1, description="samples of every client, in iid and dirichlet (default: all dealt)"
    )
    reuse: bool = Field(
        False,
        description="with --samples-per-client, use samples again where they run out; with --split "
        "natural, groups",
    )
    validation_fraction: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="fraction of the training samples that is held out, never trained on, and "
        "decides in place of test samples: targets and best rows go by it",
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
