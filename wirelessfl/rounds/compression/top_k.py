"""Top-k sparsification."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.rounds.compression.compression import Compression
from wirelessfl.submodels import ParamSpec
from wirelessfl.units import BITS_PER_ELEMENT


@dataclass(frozen=True)
class TopK(Compression):
    """Keep the k largest magnitudes and set the rest to zero; relative error w_2^2 <= 1 - k/P.

    Args:
        compression_keep: fraction of elements kept, in (0, 1]; k = round(compression_keep P), at
            least 1, where P is the number of elements of the model or of the cell's submodel.

    Raises:
        ValueError: ``compression_keep`` is out of range.
    """

    compression_keep: Annotated[
        float, Field(gt=0, le=1, description="fraction of the model's elements to send")
    ] = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.compression_keep <= 1.0:
            raise ValueError(
                f"compression_keep is {self.compression_keep}: give a fraction in (0, 1]."
            )

    def compress(self, flat: torch.Tensor, spec: ParamSpec, stream: Stream) -> torch.Tensor:
        """Keep the k largest magnitudes; of equal ones the first. ``stream`` is not used."""
        return self.compress_padded(flat, np.full(len(flat), spec.size), spec, stream)

    def compress_padded(
        self, flat: torch.Tensor, lengths: IntArray, spec: ParamSpec, stream: Stream
    ) -> torch.Tensor:
        """Keep the k_j largest magnitudes of node j, for k_j = round(compression_keep |p_j|)."""
        counts = [max(1, round(self.compression_keep * length)) for length in lengths.tolist()]
        count = torch.tensor(counts, device=flat.device)[:, None]
        # NaN ranks first, like infinity, so that divergence stays visible.
        size = flat.abs().nan_to_num(nan=math.inf, posinf=math.inf)
        smallest = size.topk(max(counts)).values.gather(-1, count - 1)
        above, equal = size > smallest, size == smallest
        ties = count - above.sum(-1, keepdim=True)
        kept = above | (equal & (equal.cumsum(-1, dtype=torch.int32) <= ties))
        return torch.where(kept, flat, 0.0)

    def bits_per_element(self, spec: ParamSpec) -> float:
        """Bits of the cheapest of three formats, if kept elements are spread evenly over the model.

        Formats: values with indices of ceil(log2 P) bits; values and a bitmap; all elements.
        """
        indices = self.compression_keep * (BITS_PER_ELEMENT + (spec.size - 1).bit_length())
        bitmap = self.compression_keep * BITS_PER_ELEMENT + 1
        return min(indices, bitmap, float(BITS_PER_ELEMENT))
