"""Convolutional networks of images, from LeNet-5 to ResNet-34."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.models.parts import StreamDropout, check_images


class CifarCNN(nn.Module):
    """Convolutions 3-16-32-64 (3x3, each with ReLU and 2x2 max-pool), then 1024-500-classes.

    Dropout follows the hidden fully connected layer.

    Args:
        input_shape: (channels, 32, 32).
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

    Dropout follows the two hidden fully connected layers.

    Args:
        input_shape: (channels, 32, 32).
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

    Dropout follows the two hidden fully connected layers.

    Args:
        input_shape: (channels, 28, 28).
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


Norm = Literal["group", "batch"]
RESNET_GROUPS = 2
_SIZES = {(32, 32): 1, (64, 64): 2}  # stride of the stem


class ResNet18(nn.Module):
    """ResNet-18 for images of 32x32 or 64x64; 11,173,962 parameters with ten classes.

    Four stages of two basic blocks (He et al., CVPR 2016) with 1, 2, 4 and 8 times ``width``
    channels, global average pooling, then one linear layer. For small images the stem is one 3x3
    convolution without pooling. At 32x32 it has stride 1; at 64x64 it has stride 2, so that all
    blocks work on the same 32x32 to 4x4 maps. Parameters and cost per step then equal those at
    32x32; with stride 1 a step would cost four times as much. Convolutions have no bias; their
    weights are initialised by fan-out (He et al., ICCV 2015). There is no dropout.

    ``norm="group"``: group normalisation, separately for each sample. It works for clients with
    different data, unlike shared running statistics (Hsieh et al., ICML 2020). There are two
    groups, so that narrow versions have the same layers.

    ``norm="batch"``: batch normalisation without running statistics. Every batch is normalised by
    its own mean and variance, in training *and in evaluation*; no statistics are stored, and only
    scales and shifts are exchanged, like all parameters. A sample's logits therefore depend on the
    other samples of its batch: test accuracy is measured on batches in the data set's order, and is
    wrong for a test set sorted by class. Batches cannot be padded, so clients train one at a time
    (executor ``loop``).

    Args:
        input_shape: (channels, 32, 32) or (channels, 64, 64).
        width: channels of the first stage, even; 64 for ResNet-18, fewer for a smaller network.
    """

    title = "resnet18"
    depths = (2, 2, 2, 2)
    """Blocks of each stage."""

    def __init__(
        self, input_shape: Sequence[int], classes: int, *, norm: Norm = "group", width: int = 64
    ) -> None:
        super().__init__()
        shape = tuple(input_shape)
        if len(shape) != 3 or shape[1:] not in _SIZES:
            raise ConfigError(
                f"model {self.title} needs images of 32x32 or 64x64, but the data set has samples "
                f"of shape {shape}: choose cifar10, cifar100 or tinyimagenet, or model fcnn."
            )
        if norm not in get_args(Norm):
            raise ConfigError(f'norm is {norm!r}: choose "group" or "batch".')
        if width < RESNET_GROUPS or width % RESNET_GROUPS:
            raise ConfigError(
                f"width is {width}: give a multiple of {RESNET_GROUPS} for {self.title}."
            )
        self.conv = _convolution(shape[0], width, _SIZES[shape[1:]])
        self.norm = _normalisation(width, norm)
        self.relu = nn.ReLU()
        blocks: list[nn.Module] = []
        channels = width
        for stage, depth in enumerate(self.depths):
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(BasicBlock(channels, width << stage, stride, norm))
                channels = width << stage
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of ``x`` [batch, channels, height, width]."""
        x = self.blocks(self.relu(self.norm(self.conv(x))))
        # Not adaptive pooling, whose gradient is not deterministic on GPUs.
        logits: Tensor = self.fc(x.mean((2, 3)))
        return logits


class ResNet34(ResNet18):
    """ResNet-34: ``ResNet18`` with 3, 4, 6 and 3 blocks; 21,282,122 parameters with ten classes.

    Arguments are those of ``ResNet18``.
    """

    title = "resnet34"
    depths = (3, 4, 6, 3)

    def __init__(
        self, input_shape: Sequence[int], classes: int, *, norm: Norm = "group", width: int = 64
    ) -> None:
        super().__init__(input_shape, classes, norm=norm, width=width)


class BasicBlock(nn.Module):
    """relu(f(x) + x), where f is two 3x3 convolutions, each followed by normalisation.

    If the shapes differ, a normalised 1x1 convolution replaces x in the sum.

    Args:
        inputs: channels of x.
        outputs: channels of f(x).
        stride: stride of the first convolution.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, outputs, stride)
        self.norm1 = _normalisation(outputs, norm)
        self.conv2 = _convolution(outputs, outputs, 1)
        self.norm2 = _normalisation(outputs, norm)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                _convolution(inputs, outputs, stride, kernel=1), _normalisation(outputs, norm)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Output [batch, outputs, height/stride, width/stride] for ``x`` [batch, inputs, ...]."""
        y = self.relu(self.norm1(self.conv1(x)))
        out: Tensor = self.relu(self.norm2(self.conv2(y)) + self.shortcut(x))
        return out


def _convolution(inputs: int, outputs: int, stride: int, kernel: int = 3) -> nn.Conv2d:
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


def _normalisation(channels: int, norm: Norm) -> nn.Module:
    if norm == "batch":
        return nn.BatchNorm2d(channels, track_running_stats=False)
    return nn.GroupNorm(RESNET_GROUPS, channels)
