"""Builds the configured model for its data set."""

from __future__ import annotations

import torch

from channels.streams import Stream
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError
from wirelessfl.models.choice import ModelChoice
from wirelessfl.models.declared import Declared


def configured_model(choice: ModelChoice, data: Dataset, stream: Stream) -> torch.nn.Module:
    """Build the configured model.

    Args:
        choice: the chosen model with its settings.
        data: data set of the model.
        stream: randomness of the initial weights.

    Raises:
        ConfigError: the model cannot be built, or its vocabulary lacks tokens of the data.
    """
    model = choice.build(
        data.input_shape,
        data.classes,
        stream=stream,
        pad_id=data.pad_id,
        vocabulary=data.vocabulary,
    )
    _check_tokens(model, data)
    return model


def _check_tokens(model: torch.nn.Module, data: Dataset) -> None:
    """Refuse token ids outside the model's declared vocabulary.

    Raises:
        ConfigError: a token id is outside the vocabulary.
    """
    vocabulary = Declared.of(model).vocabulary
    if vocabulary is None or data.train_inputs.dtype == torch.float32:
        return
    for part, inputs in (("training", data.train_inputs), ("test", data.test_inputs)):
        low, high = (int(end) for end in inputs.aminmax())
        if low < 0 or high >= vocabulary:
            raise ConfigError(
                f"data set {data.name!r} has the token id {low if low < 0 else high} in its {part} "
                f"samples, but the model accepts 0 to {vocabulary - 1}. Choose the tokenizer of "
                "the pretrained model, or another model."
            )
