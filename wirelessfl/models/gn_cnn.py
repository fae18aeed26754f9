"""A small convolutional network with group normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from wirelessfl.errors import ConfigError

WIDTHS = (16, 32, 64)
"""Channels of the convolutions."""
GROUPS = 8
"""Groups of the channels of a layer that are normalised together."""


class GroupNormCNN(nn.Module):
    """Convolutions 16-32-64 (3x3, each with group norm, ReLU, 2x2 max-pool), then classes.

    29,178 parameters with ten classes on 28x28 images of one channel. Layers with normalisation
    are those of the FAdamGC paper's ResNet-18, in a network that trains on a CPU.

    Args:
        input_shape: (channels, height, width), at least 8x8.
        classes: number of outputs.

    Raises:
        ConfigError: the samples are no images, or are too small.
    """

    def __init__(self, input_shape: Sequence[int], classes: int) -> None:
        super().__init__()
        if len(input_shape) != 3 or min(input_shape[1:]) < 2 ** len(WIDTHS):
            raise ConfigError(
                f"model gn-cnn needs images of at least 8x8, but the data set has samples of shape "
                f"{tuple(input_shape)}: choose fashion-mnist or cifar10, or model fcnn."
            )
        blocks: list[nn.Module] = []
        for inputs, outputs in pairwise((input_shape[0], *WIDTHS)):
            blocks += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)]
            blocks += [nn.GroupNorm(GROUPS, outputs), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*blocks, nn.Flatten())
        height, width = (side // 2 ** len(WIDTHS) for side in input_shape[1:])
        self.classifier = nn.Linear(WIDTHS[-1] * height * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of ``x`` [batch, channels, height, width]."""
        logits: Tensor = self.classifier(self.features(x))
        return logits
