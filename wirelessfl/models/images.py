"""Checks that models of images share."""

from __future__ import annotations

from collections.abc import Sequence

from wirelessfl.errors import ConfigError


def check_images(model: str, input_shape: Sequence[int], side: int, fitting: str) -> None:
    """Refuse samples other than square images of the side that a model requires.

    Args:
        model: its name.
        input_shape: shape of one sample, (channels, height, width).
        side: height and width that it takes, in pixels.
        fitting: data sets that have such images, in words.

    Raises:
        ConfigError: they are of another shape.
    """
    if tuple(input_shape[1:]) != (side, side):
        raise ConfigError(
            f"model {model} takes images of {side}x{side}, and the data set has samples of shape "
            f"{tuple(input_shape)}. Choose {fitting}, or model fcnn."
        )
