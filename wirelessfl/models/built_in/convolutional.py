"""The CIFAR-10 network of the HIST paper, Section VI-B2: 541,094 parameters with ten classes.

The CIFAR-10 network of the FedAST paper: 797,962 parameters with ten classes.

As in Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021.

A small convolutional network with group normalisation.

LeNet-5 for 28x28 images without padding: 44,426 parameters with ten classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.models.parts import StreamDropout, check_images


class CifarCNN(nn.Module):
    """Convolutions 3-16-32-64 (3x3, each with ReLU and 2x2 max-pool), then 1024-500-classes.

    Args:
        input_shape: (channels, 32, 32).
        classes: number of outputs.
        dropout: dropout probability after the hidden fully connected layer, in training.
    """

    fully_connected = ("fc1", "fc2")

    def __init__(self, input_shape: Sequence[int], classes: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_images("cifar-cnn", input_shape, 32, "cifar10 or cifar100")
        widths = (input_shape[0], 16, 32, 64)
        blocks: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            blocks += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*blocks, nn.Flatten())
        self.fc1 = nn.Linear(1024, 500)
        self.fc2 = nn.Linear(500, classes)
        self.relu = nn.ReLU()
        self.dropout = StreamDropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of ``x`` [batch, channels, 32, 32]."""
        logits: Tensor = self.fc2(self.dropout(self.relu(self.fc1(self.features(x)))))
        return logits


class FedASTCNN(nn.Module):
    """Two convolutions 64@5x5 (no padding, ReLU, 2x2 max-pool), then 1600-384-192-classes.

    Args:
        input_shape: (channels, 32, 32).
        classes: number of outputs.
        dropout: dropout probability after the two hidden fully connected layers, in training.
    """

    fully_connected = ("fc1", "fc2", "fc3")

    def __init__(self, input_shape: Sequence[int], classes: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_images("fedast-cnn", input_shape, 32, "cifar10 or cifar100")
        blocks: list[nn.Module] = []
        for inputs, outputs in pairwise((input_shape[0], 64, 64)):
            blocks += [nn.Conv2d(inputs, outputs, 5), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*blocks, nn.Flatten())
        self.fc1 = nn.Linear(1600, 384)
        self.fc2 = nn.Linear(384, 192)
        self.fc3 = nn.Linear(192, classes)
        self.relu = nn.ReLU()
        self.dropout1 = StreamDropout(dropout, salt=0)
        self.dropout2 = StreamDropout(dropout, salt=1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of ``x`` [batch, channels, 32, 32]."""
        x = self.dropout1(self.relu(self.fc1(self.features(x))))
        x = self.dropout2(self.relu(self.fc2(x)))
        logits: Tensor = self.fc3(x)
        return logits


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


class LeNet5(nn.Module):
    """Convolutions 6@5x5 and 16@5x5, each with ReLU and 2x2 max-pool, then 256-120-84-classes.

    Args:
        input_shape: (channels, 28, 28).
        classes: number of outputs.
        dropout: dropout probability after the two hidden fully connected layers, in training.
    """

    fully_connected = ("fc1", "fc2", "fc3")

    def __init__(self, input_shape: Sequence[int], classes: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_images("lenet5", input_shape, 28, "mnist or fashion-mnist")
        self.features = nn.Sequential(
            nn.Conv2d(input_shape[0], 6, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.fc1 = nn.Linear(256, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)
        self.relu = nn.ReLU()
        self.dropout1 = StreamDropout(dropout, salt=0)
        self.dropout2 = StreamDropout(dropout, salt=1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of ``x`` [batch, channels, 28, 28]."""
        x = self.dropout1(self.relu(self.fc1(self.features(x))))
        x = self.dropout2(self.relu(self.fc2(x)))
        logits: Tensor = self.fc3(x)
        return logits
