"""Checks shared by image models."""

from __future__ import annotations

from collections.abc import Sequence

from wirelessfl.errors import ConfigError


def check_images(model: str, input_shape: Sequence[int], side: int, fitting: str) -> None:
    """Raise unless samples are square images of the size that a model needs.

    Args:
        model: name of the model.
        input_shape: shape of one sample, (channels, height, width).
        side: required height and width, in pixels.
        fitting: names of data sets with such images, for the message.

    Raises:
        ConfigError: the samples have another shape.
    """
    if tuple(input_shape[1:]) != (side, side):
        raise ConfigError(
            f"model {model} needs images of {side}x{side}, but the data set has samples of shape "
            f"{tuple(input_shape)}: choose {fitting}, or model fcnn."
        )
