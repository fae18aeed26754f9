"""The model of a configuration, for its data."""

from __future__ import annotations

import torch
from torch import nn

from channels.streams import Stream
from wirelessfl.config.sections import ModelSection
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError
from wirelessfl.models import build_model
from wirelessfl.models.declared import Declared

OF_LAYERS = ("dropout", "hidden", "norm", "pretrained", "lora_rank", "lora_alpha")
"""Settings that a given model has no use for."""


def configured_model(settings: ModelSection, data: Dataset, stream: Stream) -> nn.Module:
    """The model that settings name.

    Args:
        settings: of the model.
        data: what it is for.
        stream: of the initial weights.

    Raises:
        ConfigError: it cannot be built, or does not know the data's tokens.
    """
    model = build_model(
        settings.model,
        data.input_shape,
        data.classes,
        dropout=settings.dropout,
        stream=stream,
        hidden=settings.hidden,
        norm=settings.norm,
        pretrained=settings.pretrained,
        lora_rank=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        pad_id=data.pad_id,
    )
    _check_tokens(model, data)
    return model


def check_given_model(settings: ModelSection) -> None:
    """Refuse settings of layers beside a model that was given as an object.

    Raises:
        ConfigError: there are such.
    """
    for name in OF_LAYERS:
        if value := getattr(settings, name):
            raise ConfigError(
                f"{name} is {value}, and the model is given: it has its own layers. Leave "
                f"{name} out."
            )


def _check_tokens(model: nn.Module, data: Dataset) -> None:
    """Refuse token ids outside the vocabulary that a model declares.

    Raises:
        ConfigError: there is one.
    """
    vocabulary = Declared.of(model).vocabulary
    if vocabulary is None or data.train_inputs.dtype == torch.float32:
        return
    for part, inputs in (("training", data.train_inputs), ("test", data.test_inputs)):
        low, high = (int(end) for end in inputs.aminmax())
        if low < 0 or high >= vocabulary:
            raise ConfigError(
                f"data set {data.name!r} has the token id {low if low < 0 else high} in its {part} "
                f"samples, and the model knows 0 to {vocabulary - 1}. Choose the tokenizer that "
                "belongs to the pretrained model, or another model."
            )
