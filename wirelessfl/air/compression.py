"""Compression of the model on the downlink: interface and built-in methods.

The compression operator C of RA-Fed: clients start from C(theta), restricted to their mask.

The proofs in the supplement of RA-Fed (KDD '23) use C and its relative error w_2,
||C(theta) - theta|| <= w_2 ||theta||, but do not specify C. Without compression C is the identity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from channels.validation import whole_number
from wirelessfl.base.guard import UnfitError, described, number, returns
from wirelessfl.base.registry import Choice, Kind
from wirelessfl.base.rows import BITS_PER_ELEMENT
from wirelessfl.models.submodels import ParamSpec


def _compressed(value: Any, compression: Compression, flat: torch.Tensor, *_: Any) -> torch.Tensor:
    """Check for a tensor like ``flat``, in new memory, that is finite where ``flat`` is."""
    required = f"a new {flat.dtype} tensor of shape {list(flat.shape)}"
    like = (
        isinstance(value, torch.Tensor) and value.shape == flat.shape and value.dtype == flat.dtype
    )
    if not like:
        raise UnfitError(described(value), required)
    if value.data_ptr() == flat.data_ptr():
        raise UnfitError("its argument flat itself", required)
    if bool((flat.isfinite() & ~value.isfinite()).any()):
        raise UnfitError("values that are not finite", f"{required}, finite where flat is finite")
    result: torch.Tensor = value.to(flat.device)
    return result


@dataclass(frozen=True)
class Compression(Choice, ABC):
    """Base class of all compression methods: the received model and its downlink bits."""

    name = "compression"

    identity: ClassVar[bool] = False
    """Whether C is the identity, so that rounds may skip it."""

    @returns(_compressed)
    @abstractmethod
    def compress(self, flat: torch.Tensor, spec: ParamSpec, stream: Stream) -> torch.Tensor:
        """Return C(theta) of each node in new memory; non-finite values do not change.

        Args:
            flat: theta, [nodes, P] float32.
            spec: spec of the full model; its size is P.
            stream: random stream of this round. The draws of a node depend only on its row, and
                are the same on every device.

        Returns:
            [nodes, P] float32.
        """

    @returns(_compressed)
    def compress_padded(
        self, flat: torch.Tensor, lengths: IntArray, spec: ParamSpec, stream: Stream
    ) -> torch.Tensor:
        """Return C(theta) of nodes with submodels of different sizes, whose padding is zero.

        A method that depends on the number of elements overrides this.

        Args:
            flat: theta, [nodes, P_max] float32.
            lengths: [nodes], number of elements that each node sends.
            spec: spec of the padded submodels; its size is P_max.
            stream: as for ``compress``.

        Returns:
            [nodes, P_max] float32.
        """
        return self.compress(flat, spec, stream)

    @property
    def used(self) -> Compression | None:
        """This method; None if it changes nothing."""
        return None if self.identity else self

    @returns(number())
    @abstractmethod
    def bits_per_element(self, spec: ParamSpec) -> float:
        """Mean downlink bits per element of the model or a submodel.

        Args:
            spec: spec of the full model.
        """


def sent_vectors(sends: int, compression: Compression | None, spec: ParamSpec) -> float:
    """Number of 32-bit vectors sent to a client; a compressed model counts as less than 1.

    Args:
        sends: number of vectors with the model.
        compression: compression of the model; None for no compression.
        spec: spec of the full model.
    """
    if compression is None:
        return float(sends)
    return sends + (compression.bits_per_element(spec) / BITS_PER_ELEMENT - 1)


def relative_error(before: torch.Tensor, after: torch.Tensor) -> float:
    """w_2 = ||C(x) - x|| / ||x||, maximum over the nodes; 0 for x = 0, NaN if x has diverged.

    Args:
        before: x, [nodes, P].
        after: C(x), [nodes, P].
    """
    error = torch.linalg.vector_norm(after - before, dim=-1, dtype=torch.float64)
    norm = torch.linalg.vector_norm(before, dim=-1, dtype=torch.float64)
    return float(torch.where(norm == 0, 0.0, error / norm).max())


@dataclass(frozen=True)
class Uncompressed(Compression):
    """No compression: 32 bits per element."""

    name = "none"

    identity: ClassVar[bool] = True

    def compress(self, flat: torch.Tensor, spec: ParamSpec, stream: Stream) -> torch.Tensor:
        """Return a copy."""
        return flat.clone()

    def bits_per_element(self, spec: ParamSpec) -> float:
        """32 bits."""
        return BITS_PER_ELEMENT


@dataclass(frozen=True)
class Quantisation(Compression):
    """Stochastic rounding to a grid of ``compression_bits`` bits; unbiased up to float32.

    As in QSGD (Alistarh et al., NeurIPS 2017), each element is rounded to one of the two nearest
    levels, with probabilities that preserve its mean. Here the 2^(bits - 1) - 1 levels on each side
    of 0 extend to the largest magnitude of the parameter tensor, not to its norm.

    Raises:
        TypeError: ``compression_bits`` is not an integer.
        ValueError: it is out of range.
    """

    name = "quantisation"

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
        parts = zip(*(x.split_with_sizes(sizes, -1) for x in (flat, uniform)), strict=True)
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


@dataclass(frozen=True)
class TopK(Compression):
    """Keep the k largest magnitudes and set the rest to zero; relative error w_2^2 <= 1 - k/P.

    Raises:
        ValueError: ``compression_keep`` is out of range.
    """

    name = "top-k"

    compression_keep: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            description=(
                "fraction of the elements of the model, or of the cell's submodel, "
                "to send; at least one"
            ),
        ),
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


COMPRESSIONS: Kind[Compression] = Kind(
    "compression",
    __name__,
    Compression,
    default="none",
    text="compression of the model on the downlink",
)
"""All compression methods of the downlink."""


__all__ = [
    "COMPRESSIONS",
    "Compression",
    "Quantisation",
    "TopK",
    "Uncompressed",
    "relative_error",
    "sent_vectors",
]
