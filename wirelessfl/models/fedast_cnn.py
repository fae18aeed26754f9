"""The CIFAR-10 network of the FedAST paper: 797,962 parameters with ten classes.

As in Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from wirelessfl.models.dropout import StreamDropout
from wirelessfl.models.images import check_images


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
