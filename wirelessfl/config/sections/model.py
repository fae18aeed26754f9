"""Settings of the model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from wirelessfl.config.sections.base import Section


def _names(given: Any) -> Any:
    """Names in a list, or in a text between commas."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(entry, str) for entry in listed):
        return given
    return tuple(name.strip() for entry in listed for name in entry.split(","))


class ModelSection(Section):
    """The model."""

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
