"""Fully connected networks of the HIST and FedAST papers, and a linear classifier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from wirelessfl.models.parts import StreamDropout


class FCNN(nn.Module):
    """Fully connected ReLU network; 238,510 parameters on 28x28 images with 300 neurons (HIST).

    Dropout follows each hidden layer.

    Args:
        input_shape: shape of one sample, which is flattened.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        classes: int,
        *,
        hidden: Sequence[int] = (300,),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        widths = [math.prod(input_shape), *hidden, classes]
        layers: list[nn.Module] = [nn.Flatten()]
        self.fully_connected = tuple(f"layers.{1 + 3 * i}" for i in range(len(widths) - 1))
        for i, (inputs, outputs) in enumerate(pairwise(widths)):
            layers.append(nn.Linear(inputs, outputs))
            if i < len(hidden):
                layers += [nn.ReLU(), StreamDropout(dropout, salt=i)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of ``x`` [batch, *input_shape]."""
        logits: Tensor = self.layers(x)
        return logits


class MLP(FCNN):
    """Two hidden layers of 200 neurons: 199,210 parameters on 28x28 images (FedAST paper).

    It is the "2NN" of McMahan et al. (AISTATS 2017). Arguments are those of ``FCNN``.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        classes: int,
        *,
        hidden: Sequence[int] = (200, 200),
        dropout: float = 0.0,
    ) -> None:
        super().__init__(input_shape, classes, hidden=hidden, dropout=dropout)


class LinearClassifier(FCNN):
    """Linear classifier: 7,850 parameters on 28x28 images with ten classes.

    Args:
        input_shape: shape of one sample, which is flattened.
    """

    def __init__(self, input_shape: Sequence[int], classes: int) -> None:
        super().__init__(input_shape, classes, hidden=())
