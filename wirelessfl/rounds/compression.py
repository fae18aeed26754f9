"""The compression operator C of RA-Fed: clients start from C(theta), restricted to their mask.

C and its relative error w_2, ||C(theta) - theta|| <= w_2 ||theta||, are those of the proofs in the
supplement of RA-Fed (KDD '23), which leave open what C is: without compression it is the identity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from channels.streams import Stream
from channels.validation import whole_number
from wirelessfl.submodels import ParamSpec
from wirelessfl.units import BITS_PER_ELEMENT

Kind = Literal["none", "top-k", "quantisation"]


@dataclass(frozen=True)
class Compression(ABC):
    """Base of every C: what becomes of a model on its way down, and the bits that it then takes."""

    @abstractmethod
    def compress(self, flat: Tensor, spec: ParamSpec, stream: Stream) -> Tensor:
        """C(theta) of each node, in new memory; what is not finite goes through as it is.

        Args:
            flat: theta, [nodes, P] float32.
            spec: of the full model; its size is P.
            stream: randomness of this round. A node draws by its row, independently of other nodes,
                and the same numbers on every device.

        Returns:
            [nodes, P] float32.
        """

    @abstractmethod
    def bits_per_element(self, spec: ParamSpec) -> float:
        """Bits on the downlink that an element of a model, or of a part of it, takes in the mean.

        Args:
            spec: of the full model.
        """


@dataclass(frozen=True)
class TopK(Compression):
    """The largest magnitudes of a node's whole vector stay, the rest is zero: w_2^2 <= 1 - k/P.

    Args:
        keep: share of the elements that stay, in (0, 1]; k = round(keep P), at least 1.

    Raises:
        ValueError: ``keep`` is out of range.
    """

    keep: float

    def __post_init__(self) -> None:
        if not 0.0 < self.keep <= 1.0:
            raise ValueError(
                f"keep is {self.keep}: give the share of elements that stay, above 0 and at most 1."
            )

    def compress(self, flat: Tensor, spec: ParamSpec, stream: Stream) -> Tensor:
        """[nodes, P]; of equal magnitudes, the first ones stay. Nothing is drawn."""
        count = max(1, round(self.keep * spec.size))
        # NaN ranks first, as infinity does: a diverged model stays one that can be seen.
        size = flat.abs().nan_to_num(nan=math.inf, posinf=math.inf)
        smallest = size.topk(count, sorted=False).values.amin(-1, keepdim=True)
        above, equal = size > smallest, size == smallest
        room = count - above.sum(-1, keepdim=True)
        stays = above | (equal & (equal.cumsum(-1, dtype=torch.int32) <= room))
        return torch.where(stays, flat, 0.0)

    def bits_per_element(self, spec: ParamSpec) -> float:
        """The cheapest of three formats, as if what stays lay evenly over the model.

        Values, each with its place of ceil(log2 P) bits; values and a bitmap; or all elements.
        """
        places = self.keep * (BITS_PER_ELEMENT + (spec.size - 1).bit_length())
        bitmap = self.keep * BITS_PER_ELEMENT + 1
        return min(places, bitmap, float(BITS_PER_ELEMENT))


@dataclass(frozen=True)
class Quantisation(Compression):
    """Every element rounded at random to a grid of ``bits`` bits, E C(x) = x up to float32.

    The rounding of QSGD (Alistarh et al., NeurIPS 2017): between two levels, the upper one with
    the probability that makes the mean right. Here the 2^(bits - 1) - 1 levels on each side of 0
    reach up to the largest magnitude of the parameter tensor, not up to its norm.

    Args:
        bits: of an element, its sign among them, 2 to 16.

    Raises:
        TypeError: ``bits`` is no integer.
        ValueError: it is out of range.
    """

    bits: int

    def __post_init__(self) -> None:
        if not 2 <= whole_number("bits", self.bits) <= 16:
            raise ValueError(f"bits is {self.bits}: give 2 to 16 bits an element, with its sign.")

    @property
    def levels(self) -> int:
        """Levels on each side of 0."""
        return (1 << (self.bits - 1)) - 1

    def compress(self, flat: Tensor, spec: ParamSpec, stream: Stream) -> Tensor:
        """[nodes, P]; tensors that are all zero, or not finite, stay as they are."""
        draws = (stream.generator(node) for node in range(len(flat)))
        # On the CPU, so that every device rounds alike.
        uniform = torch.stack(
            [torch.from_numpy(draw.random(spec.size, dtype="float32")) for draw in draws]
        ).to(flat.device)
        sizes = [math.prod(shape) for shape in spec.shapes.values()]
        parts = zip(*(each.split_with_sizes(sizes, -1) for each in (flat, uniform)), strict=True)
        return torch.cat([self._rounded(x, u) for x, u in parts if x.shape[-1]], -1)

    def _rounded(self, x: Tensor, uniform: Tensor) -> Tensor:
        """One parameter tensor x [nodes, elements], by ``uniform`` numbers in [0, 1)."""
        # A tensor, as GPUs multiply by the reciprocal of a number, which rounds otherwise.
        levels = torch.full_like(x[:, :1], self.levels)
        scale = x.abs().amax(-1, keepdim=True)
        # Divided by the scale first: scale / levels is 0 for the smallest of scales.
        height = x.abs() / scale * levels
        below = height.floor()
        level = below + (uniform < height - below)
        rounded = x.sign() * (level / levels) * scale
        return torch.where((scale > 0) & (scale < math.inf), rounded, x)

    def bits_per_element(self, spec: ParamSpec) -> float:
        """``bits``, and a share of the tensors' float32 scales, as if they lay evenly over all."""
        return self.bits + BITS_PER_ELEMENT * len(spec.shapes) / spec.size


def relative_error(before: Tensor, after: Tensor) -> float:
    """w_2 = ||C(x) - x|| / ||x||, the largest over the nodes; 0 for x = 0, NaN if x has diverged.

    Args:
        before: x, [nodes, P].
        after: C(x), [nodes, P].
    """
    error = torch.linalg.vector_norm(after - before, dim=-1, dtype=torch.float64)
    norm = torch.linalg.vector_norm(before, dim=-1, dtype=torch.float64)
    return float(torch.where(norm == 0, 0.0, error / norm).max())


def make_compression(kind: Kind, keep: float, bits: int) -> Compression | None:
    """The C of the settings; None is the identity.

    Args:
        kind: which.
        keep: of top-k.
        bits: of quantisation.

    Raises:
        ValueError: the setting that ``kind`` uses is out of range; the other is not looked at.
    """
    match kind:
        case "none":
            return None
        case "top-k":
            return TopK(keep)
        case "quantisation":
            return Quantisation(bits)
