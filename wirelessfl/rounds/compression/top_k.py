"""Top-k sparsification."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from channels.streams import Stream
from wirelessfl.rounds.compression.base import Compression
from wirelessfl.submodels import ParamSpec
from wirelessfl.units import BITS_PER_ELEMENT


@dataclass(frozen=True)
class TopK(Compression):
    """Keep the k largest magnitudes and set the rest to zero; relative error w_2^2 <= 1 - k/P.

    Args:
        compression_keep: fraction of elements kept, in (0, 1]; k = round(compression_keep P), at
            least 1.

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

    def compress(self, flat: Tensor, spec: ParamSpec, stream: Stream) -> Tensor:
        """Keep the k largest magnitudes; of equal ones the first. ``stream`` is not used."""
        count = max(1, round(self.compression_keep * spec.size))
        # NaN ranks first, like infinity, so that divergence stays visible.
        size = flat.abs().nan_to_num(nan=math.inf, posinf=math.inf)
        smallest = size.topk(count, sorted=False).values.amin(-1, keepdim=True)
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
