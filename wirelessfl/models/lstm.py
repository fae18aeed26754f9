"""LSTM for the next character of a text: 819,920 parameters with 80 characters.

Hochreiter and Schmidhuber, 1997; two layers of 256 behind an embedding of 8, as in McMahan et al.
(AISTATS 2017) and LEAF (Caldas et al., 2018). Clients train together by vmap, under which torch's
nn.LSTM does not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from wirelessfl.errors import ConfigError

EMBEDDING = 8


class LSTMLayer(nn.Module):
    """One layer of torch's nn.LSTM: its equations, its parameters and how they are drawn.

    Gates stand in the order input, forget, cell, output. The first state is zero.

    Args:
        inputs: width of what comes in.
        width: of the hidden state and of the cell.
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
        """Hidden states [batch, width], one a step, of ``x`` [length, batch, inputs]."""
        # As a matrix: by several dimensions, vmap would copy the weights for every step.
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
    """Embedding of 8, LSTM layers, and a linear layer on the last hidden state.

    Args:
        input_shape: (length,), token ids below ``classes``.
        classes: outputs, one a token.
        hidden: width of each LSTM layer.

    Raises:
        ConfigError: the samples are not texts, or there are no layers.
    """

    test_batch = 256
    """Texts that are tested at once: a layer takes 4 * width numbers a token."""

    def __init__(
        self, input_shape: Sequence[int], classes: int, *, hidden: Sequence[int] = (256, 256)
    ) -> None:
        super().__init__()
        if len(input_shape) != 1:
            raise ConfigError(
                f"model lstm takes texts as token ids [length], and the data set has samples of "
                f"shape {tuple(input_shape)}. Choose shakespeare, or model fcnn."
            )
        if not hidden:
            raise ConfigError("hidden is empty: lstm needs the width of at least one layer.")
        self.vocabulary = classes
        """Token ids that it knows: 0 to this, without it."""
        self.embedding = nn.Embedding(classes, EMBEDDING)
        widths = (EMBEDDING, *hidden)
        self.layers = nn.ModuleList(LSTMLayer(*pair) for pair in pairwise(widths))
        self.fc = nn.Linear(widths[-1], classes)
        # Floats that autograd keeps of a text, rounded up: 16 vectors a token and layer.
        self.bytes_per_sample = 4 * input_shape[0] * 16 * sum(hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of token ids ``x`` [batch, length]."""
        states = self.embedding(x.t())
        for layer in self.layers[:-1]:
            states = torch.stack(layer(states))
        logits: Tensor = self.fc(self.layers[-1](states)[-1])
        return logits
