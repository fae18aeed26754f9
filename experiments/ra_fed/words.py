"""20 Newsgroups as the words that occur in a post, for models without embeddings.

The names of its runs depend on the content of this file.
"""

from __future__ import annotations

import os
from dataclasses import replace

import torch
from torch import Tensor

from wirelessfl.data import Dataset, load_dataset
from wirelessfl.data.tokens import FIRST_ID

WORDS = 1000
"""Number of words: the most frequent ones of the training posts."""
LENGTH = 256
"""Number of words of a post that are read."""


def newsgroups(data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """20 Newsgroups with posts as vectors in {0, 1}^WORDS: whether each word occurs."""
    data = load_dataset("20newsgroups", data_dir, tokenizer=f"words:{WORDS}", max_length=LENGTH)
    return replace(
        data,
        train_inputs=occurring(data.train_inputs),
        test_inputs=occurring(data.test_inputs),
        pad_id=None,
        vocabulary=None,
        words=None,
    )


def occurring(ids: Tensor) -> Tensor:
    """Whether each word occurs among token ids [n, length]: float32 [n, WORDS] in {0, 1}.

    >>> import torch
    >>> from experiments.ra_fed.words import occurring
    >>> occurring(torch.tensor([[2, 4, 2, 0]]))[0, :4]
    tensor([1., 0., 1., 0.])
    """
    seen = torch.zeros(len(ids), FIRST_ID + WORDS).scatter_(1, ids, 1.0)
    return seen[:, FIRST_ID:].contiguous()
