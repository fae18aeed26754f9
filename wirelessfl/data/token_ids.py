"""Token ids of texts as matrices, padded on the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch


class TokenIds(NamedTuple):
    """Tokenised texts.

    Args:
        parts: ids [texts, length] int64 of each part, e.g. of the training and the test texts.
        pad_id: id of the padding token.
        vocabulary: number of token ids, which start at 0.
    """

    parts: list[torch.Tensor]
    pad_id: int
    vocabulary: int


def padded(rows: Iterable[Sequence[int]], texts: int, length: int, pad_id: int) -> torch.Tensor:
    """Ids [texts, length] int64 of ``texts`` rows of at most ``length`` ids each."""
    ids = np.full((texts, length), pad_id, dtype=np.int64)
    for row, found in enumerate(rows):
        ids[row, : len(found)] = found
    return torch.from_numpy(ids)
