"""A small text classifier: the mean of word embeddings, then fully connected layers.

The model of fastText (Joulin et al., "Bag of Tricks for Efficient Text Classification", EACL 2017)
without n-grams, and with hidden layers a deep averaging network (Iyyer et al., ACL 2015).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.data.tokens import WORDS
from wirelessfl.models.built_in.dense import FCNN


class TextMean(nn.Module):
    """Mean of the embeddings of a text's tokens, optional hidden ReLU layers, a linear output.

    Padding is left out of the mean; the mean of a text without tokens is zero.

    Args:
        input_shape: (length,), token ids of a text.
        classes: number of outputs.
        hidden: width of each hidden layer.
        dropout: dropout probability after each hidden layer, in training.
        embedding: size E of the embeddings.
        vocabulary: number of token ids of the data set.
        pad_id: id of the padding token; None if texts are not padded.

    Raises:
        ConfigError: the samples are not texts, the data set does not state its vocabulary, or there
            is dropout without hidden layers.
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
        embedding: int = 64,
        vocabulary: int | None = None,
        pad_id: int | None = None,
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
        self.embedding = nn.Embedding(vocabulary, embedding)
        # Smaller than N(0, 1), the default of torch: words that are rare in the training texts keep
        # their initial embeddings, which are noise in the mean.
        nn.init.uniform_(self.embedding.weight, -0.5, 0.5)
        self.classifier = FCNN((embedding,), classes, hidden=hidden, dropout=dropout)
        self.fully_connected = tuple(
            f"classifier.{name}" for name in self.classifier.fully_connected
        )
        # Floats that autograd stores per text, rounded up: the embeddings and their gradient.
        self.bytes_per_sample = 4 * (2 * input_shape[0] * embedding + 4 * sum(hidden))

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of token ids ``x`` [batch, length]."""
        embedded = self.embedding(x)
        seen = torch.ones_like(x) if self.pad_id is None else x != self.pad_id
        weight = seen.to(embedded.dtype)
        weight = weight / weight.sum(1, keepdim=True).clamp(min=1.0)
        # A product of matrices needs no second array of the size of the embeddings.
        logits: Tensor = self.classifier(torch.bmm(weight[:, None], embedded).squeeze(1))
        return logits
