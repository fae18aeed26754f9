"""Stochastic quantisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from channels.streams import Stream
from channels.validation import whole_number
from wirelessfl.rounds.compression.compression import Compression
from wirelessfl.submodels import ParamSpec
from wirelessfl.units import BITS_PER_ELEMENT


@dataclass(frozen=True)
class Quantisation(Compression):
    """Stochastic rounding to a grid of ``compression_bits`` bits; unbiased up to float32.

    As in QSGD (Alistarh et al., NeurIPS 2017), each element is rounded to one of the two nearest
    levels, with probabilities that preserve its mean. Here the 2^(bits - 1) - 1 levels on each side
    of 0 extend to the largest magnitude of the parameter tensor, not to its norm.

    Args:
        compression_bits: bits per element, sign included, 2 to 16.

    Raises:
        TypeError: ``compression_bits`` is not an integer.
        ValueError: it is out of range.
    """

    compression_bits: Annotated[
        int, Field(ge=2, le=16, description="bits per element, sign included")
    ] = 8

    def __post_init__(self) -> None:
        if not 2 <= whole_number("compression_bits", self.compression_bits) <= 16:
            raise ValueError(
                f"compression_bits is {self.compression_bits}: give 2 to 16 bits per element."
            )

    @property
    def levels(self) -> int:
        """Number of levels on each side of 0."""
        return (1 << (self.compression_bits - 1)) - 1

    def compress(self, flat: torch.Tensor, spec: ParamSpec, stream: Stream) -> torch.Tensor:
        """Round each parameter tensor; tensors that are all zero or not finite do not change."""
        draws = (stream.generator(node) for node in range(len(flat)))
        # Drawn on the CPU, so that all devices round identically.
        uniform = torch.stack(
            [torch.from_numpy(draw.random(spec.size, dtype="float32")) for draw in draws]
        ).to(flat.device)
        sizes = [math.prod(shape) for shape in spec.shapes.values()]
        parts = zip(*(each.split_with_sizes(sizes, -1) for each in (flat, uniform)), strict=True)
        return torch.cat([self._rounded(x, u) for x, u in parts if x.shape[-1]], -1)

    def _rounded(self, x: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
        """Round one parameter tensor x [nodes, elements] with ``uniform`` numbers in [0, 1)."""
        # A tensor: for a Python number, GPUs multiply by its reciprocal, which rounds differently.
        levels = torch.full_like(x[:, :1], self.levels)
        scale = x.abs().amax(-1, keepdim=True)
        # Divide by the scale first: scale / levels would underflow to 0 for the smallest scales.
        height = x.abs() / scale * levels
        below = height.floor()
        level = below + (uniform < height - below)
        rounded = x.sign() * (level / levels) * scale
        return torch.where((scale > 0) & (scale < math.inf), rounded, x)

    def bits_per_element(self, spec: ParamSpec) -> float:
        """``compression_bits``, plus the tensors' float32 scales averaged over all elements."""
        return self.compression_bits + BITS_PER_ELEMENT * len(spec.shapes) / spec.size
