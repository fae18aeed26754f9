"""LSTM that predicts the next character of a text: 819,920 parameters with 80 characters.

Hochreiter and Schmidhuber, 1997; two layers of width 256 after an embedding of size 8, as in
McMahan et al. (AISTATS 2017) and LEAF (Caldas et al., 2018). The layers are implemented here
because torch's nn.LSTM does not run under vmap, which trains several clients at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError

EMBEDDING = 8


class LSTMLayer(nn.Module):
    """One LSTM layer with the equations, parameters and initialisation of torch's nn.LSTM.

    The order of the gates is input, forget, cell, output. The initial state is zero.

    Args:
        inputs: size of the input vectors.
        width: size of the hidden state and of the cell state.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.weight_ih = nn.Parameter(torch.empty(4 * width, inputs))
        self.weight_hh = nn.Parameter(torch.empty(4 * width, width))
        self.bias_ih = nn.Parameter(torch.empty(4 * width))
        self.bias_hh = nn.Parameter(torch.empty(4 * width))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(width**-0.5), width**-0.5)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Hidden states [batch, width], one per step, for ``x`` [length, batch, inputs]."""
        # Flatten the inputs to a matrix: otherwise vmap would copy the weights for every step.
        given = torch.addmm(self.bias_ih + self.bias_hh, x.flatten(0, 1), self.weight_ih.t())
        recurrent, states = self.weight_hh.t(), []
        hidden = cell = x.new_zeros(x.shape[1], self.width)
        for inputs in given.view(*x.shape[:2], -1).unbind(0):
            gates = torch.addmm(inputs, hidden, recurrent)
            both, new, out = torch.split(gates, [2 * self.width, self.width, self.width], -1)
            enter, keep = both.sigmoid().chunk(2, -1)
            cell = keep * cell + enter * new.tanh()
            hidden = out.sigmoid() * cell.tanh()
            states.append(hidden)
        return states


class LSTM(nn.Module):
    """Embedding of size 8, LSTM layers, and a linear layer on the last hidden state.

    Args:
        input_shape: (length,), token ids below ``classes``.
        classes: number of outputs, one per token id.
        hidden: width of each LSTM layer.

    Raises:
        ConfigError: the samples are not texts, or ``hidden`` is empty.
    """

    test_batch = 256
    """Texts per test batch; a layer needs 4 * width numbers per token."""

    def __init__(
        self, input_shape: Sequence[int], classes: int, *, hidden: Sequence[int] = (256, 256)
    ) -> None:
        super().__init__()
        if len(input_shape) != 1:
            raise ConfigError(
                f"model lstm needs texts as token ids [length], but the data set has samples of "
                f"shape {tuple(input_shape)}: choose shakespeare, or model fcnn."
            )
        if not hidden:
            raise ConfigError("hidden is empty: give the width of at least one layer of lstm.")
        self.vocabulary = classes
        """Number of known token ids; ids start at 0."""
        self.embedding = nn.Embedding(classes, EMBEDDING)
        widths = (EMBEDDING, *hidden)
        self.layers = nn.ModuleList(LSTMLayer(*pair) for pair in pairwise(widths))
        self.fc = nn.Linear(widths[-1], classes)
        # Floats that autograd stores per text, rounded up: 16 vectors per token and layer.
        self.bytes_per_sample = 4 * input_shape[0] * 16 * sum(hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of token ids ``x`` [batch, length]."""
        states = self.embedding(x.t())
        for layer in self.layers[:-1]:
            states = torch.stack(layer(states))
        logits: Tensor = self.fc(self.layers[-1](states)[-1])
        return logits
