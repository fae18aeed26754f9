"""Models of texts: an LSTM for the next character, and a classifier by the mean of embeddings.

The LSTM (Hochreiter and Schmidhuber, 1997) has 819,920 parameters with 80 characters, as in McMahan
et al. (AISTATS 2017) and LEAF (Caldas et al., 2018). Its layers are implemented here, because
torch's nn.LSTM does not run under vmap, which trains several clients at once. The classifier is
that of fastText (Joulin et al., EACL 2017) without n-grams, and with hidden layers a deep averaging
network (Iyyer et al., ACL 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.data.tokens import WORDS
from wirelessfl.data.word_vectors import WordVectors
from wirelessfl.models.built_in.dense import FCNN

EMBEDDING = 8
"""Size of the embeddings of ``LSTM``."""
MEAN_EMBEDDING = 64
"""Default size of the embeddings of ``TextMean``."""


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
        products = torch.addmm(self.bias_ih + self.bias_hh, x.flatten(0, 1), self.weight_ih.t())
        recurrent, states = self.weight_hh.t(), []
        hidden = cell = x.new_zeros(x.shape[1], self.width)
        for inputs in products.view(*x.shape[:2], -1).unbind(0):
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


class TextMean(nn.Module):
    """Mean of the embeddings of a text's tokens, optional hidden ReLU layers, a linear output.

    Padding is left out of the mean; the mean of a text without tokens is zero.

    Args:
        input_shape: (length,), token ids of a text.
        embedding: size E of the embeddings; None for that of the file, or 64 without a file.
        embedding_file: pretrained vectors of words, with which training starts; other words start
            at random, as all words do without a file.
        vocabulary: number of token ids of the data set.
        pad_id: id of the padding token; None if texts are not padded.
        words: the word of each token id, "" for ids that are not words.
    """

    default_tokenizer = WORDS
    """Tokenizer of a run that names none."""
    test_batch = 500
    """Texts per test batch; the embeddings of a text need length * E numbers."""

    def __init__(
        self,
        input_shape: Sequence[int],
        classes: int,
        *,
        hidden: Sequence[int] = (),
        dropout: float = 0.0,
        embedding: int | None = None,
        embedding_file: Path | None = None,
        vocabulary: int | None = None,
        pad_id: int | None = None,
        words: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        if len(input_shape) != 1:
            raise ConfigError(
                f"model text-mean needs texts as token ids [length], but the data set has samples "
                f"of shape {tuple(input_shape)}: choose 20newsgroups or another data set of texts, "
                "or model fcnn."
            )
        if vocabulary is None:
            raise ConfigError(
                "model text-mean needs the number of token ids, but the data set does not state "
                "it: give it as vocabulary of the wirelessfl.data.Dataset."
            )
        if dropout and not hidden:
            raise ConfigError(
                f"dropout is {dropout}, but text-mean has no hidden layers to drop neurons of: "
                "give hidden, or leave dropout out."
            )
        self.vocabulary = vocabulary
        """Number of token ids; ids start at 0."""
        self.pad_id = pad_id
        self.notes: tuple[str, ...] = ()
        """What a run reports."""
        vectors = None if embedding_file is None else _vectors(embedding_file, words, embedding)
        embedding = vectors.width if vectors is not None else embedding or MEAN_EMBEDDING
        self.embedding = nn.Embedding(vocabulary, embedding)
        # Smaller than N(0, 1), the default of torch: words that are rare in the training texts keep
        # their initial embeddings, which are noise in the mean.
        nn.init.uniform_(self.embedding.weight, -0.5, 0.5)
        if vectors is not None and words is not None:
            self._start_at(vectors, words)
        self.classifier = FCNN((embedding,), classes, hidden=hidden, dropout=dropout)
        self.fully_connected = tuple(
            f"classifier.{name}" for name in self.classifier.fully_connected
        )
        # Floats that autograd stores per text, rounded up: the embeddings and their gradient.
        self.bytes_per_sample = 4 * (2 * input_shape[0] * embedding + 4 * sum(hidden))

    def _start_at(self, vectors: WordVectors, words: Sequence[str]) -> None:
        """Start the embeddings of words at their vectors."""
        with torch.no_grad():
            for number, word in enumerate(words):
                if word in vectors.of:
                    self.embedding.weight[number] = torch.from_numpy(vectors.of[word])
        total = sum(map(bool, words))
        missing = total - len(vectors.of)
        if missing:
            self.notes = (
                f"model text-mean: {missing:,} of {total:,} words ({missing / total:.1%}) are not "
                "in embedding_file; their embeddings start at random.",
            )

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of token ids ``x`` [batch, length]."""
        embedded = self.embedding(x)
        seen = torch.ones_like(x) if self.pad_id is None else x != self.pad_id
        weight = seen.to(embedded.dtype)
        weight = weight / weight.sum(1, keepdim=True).clamp(min=1.0)
        # A product of matrices needs no second array of the size of the embeddings.
        logits: Tensor = self.classifier(torch.bmm(weight[:, None], embedded).squeeze(1))
        return logits


def _vectors(file: Path, words: Sequence[str] | None, width: int | None) -> WordVectors:
    """The vectors of words in a file.

    Raises:
        ConfigError: the words of the token ids are not known, or vectors have another width.
    """
    if words is None:
        raise ConfigError(
            "embedding_file needs the word of each token id, but the data set does not state it: "
            f"choose texts with tokenizer {WORDS}, or give words of the wirelessfl.data.Dataset."
        )
    vectors = WordVectors.read(file, {word for word in words if word})
    if width not in (None, vectors.width):
        raise ConfigError(
            f"embedding is {width}, but the vectors in embedding_file {file} have "
            f"{vectors.width} numbers: leave embedding out, or give another file."
        )
    return vectors
