"""LeNet-5 for 28x28 images without padding: 44,426 parameters with ten classes."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from wirelessfl.models.dropout import StreamDropout
from wirelessfl.models.images import check_images


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
