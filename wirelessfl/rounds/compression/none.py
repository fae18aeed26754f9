"""No compression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from channels.streams import Stream
from wirelessfl.rounds.compression.compression import Compression
from wirelessfl.submodels import ParamSpec
from wirelessfl.units import BITS_PER_ELEMENT


@dataclass(frozen=True)
class Uncompressed(Compression):
    """No compression: 32 bits per element."""

    identity: ClassVar[bool] = True

    def compress(self, flat: torch.Tensor, spec: ParamSpec, stream: Stream) -> torch.Tensor:
        """Return a copy."""
        return flat.clone()

    def bits_per_element(self, spec: ParamSpec) -> float:
        """32 bits."""
        return BITS_PER_ELEMENT
