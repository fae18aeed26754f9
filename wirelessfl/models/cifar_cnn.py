"""The CIFAR-10 network of the HIST paper, Section VI-B2: 541,094 parameters with ten classes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from wirelessfl.models.dropout import StreamDropout
from wirelessfl.models.images import check_images


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
