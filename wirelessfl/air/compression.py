"""Compression of what is sent, up or down: interface and built-in methods.

On the uplink a method compresses the change of the model that a client sends; on the downlink it
is the operator C of RA-Fed: clients start from C(theta), restricted to their mask. The proofs in
the supplement of RA-Fed (KDD '23) use C and its relative error w_2, ||C(theta) - theta|| <= w_2
||theta||, but do not specify C. Without compression C is the identity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from channels.validation import whole_number
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import UnfitError, described, returns
from wirelessfl.base.import_paths import path_of
from wirelessfl.base.needs import Suits
from wirelessfl.base.registry import Choice, Kind
from wirelessfl.base.rows import BITS_PER_ELEMENT
from wirelessfl.models.submodels import ParamSpec

RESIDUAL = "uplink_residual"
"""Name of what a client's compressed uploads have left out, with error feedback."""
MOST_BITS = BITS_PER_ELEMENT
"""Bits of a quantised element with which it is sent as it is."""


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


def _bits(value: Any, compression: Compression, lengths: IntArray, *_: Any) -> IntArray:
    """Check for whole bits of the shape of ``lengths``."""
    required = (
        f"an array of whole numbers of the shape of lengths, {list(lengths.shape)}, 0 without "
        "elements and otherwise >= 1"
    )
    whole = isinstance(value, np.ndarray) and value.dtype.kind in "iu"
    if not whole or value.shape != lengths.shape or ((value > 0) != (lengths > 0)).any():
        raise UnfitError(described(value), required)
    return np.asarray(value, dtype=np.int64)


@dataclass(frozen=True)
class Compression(Choice, ABC):
    """Base class of all compression methods: what is received of a vector, and its bits."""

    name = "compression"

    def __init_subclass__(cls) -> None:
        """Refuse the members of earlier versions, which nothing would call."""
        super().__init_subclass__()
        for member in ("bits_per_element", "compress_padded"):
            if member in vars(cls):
                raise ConfigError(
                    f"{path_of(cls)} defines {member}, which would be ignored: define "
                    "compress(flat, lengths, spec, streams) and bits(lengths, spec)."
                )

    @returns(_compressed)
    @abstractmethod
    def compress(
        self, flat: torch.Tensor, lengths: IntArray, spec: ParamSpec, streams: Sequence[Stream]
    ) -> torch.Tensor:
        """Return C(x) of each row in new memory; non-finite values do not change.

        Args:
            flat: x of each client or node, [rows, P] float32; padding of submodels is 0, and what
                is returned there has no effect.
            lengths: [rows], number of elements that each sends: P, or those of its submodel.
            spec: spec of the rows; its size is P.
            streams: [rows], random stream of each row, from which all its numbers are drawn on the
                CPU, so that a row depends neither on the others nor on the device.

        Returns:
            [rows, P] float32.
        """

    @returns(_bits)
    @abstractmethod
    def bits(self, lengths: IntArray, spec: ParamSpec) -> IntArray:
        """Bits that are sent for vectors of these lengths, with scales and indices.

        Args:
            lengths: [...], number of elements of the vectors.
            spec: spec of the full model.

        Returns:
            [...], whole bits; 0 for vectors without elements.
        """


def relative_errors(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """||C(x) - x|| / ||x|| of each row, [rows] float64; 0 for x = 0, NaN if x has diverged.

    Args:
        before: x, [rows, P].
        after: C(x), [rows, P].
    """
    error = torch.linalg.vector_norm(after - before, dim=-1, dtype=torch.float64)
    norm = torch.linalg.vector_norm(before, dim=-1, dtype=torch.float64)
    return torch.where(norm == 0, 0.0, error / norm)


@dataclass(frozen=True)
class Uncompressed(Compression):
    """No compression: 32 bits per element."""

    name = "none"

    def compress(
        self, flat: torch.Tensor, lengths: IntArray, spec: ParamSpec, streams: Sequence[Stream]
    ) -> torch.Tensor:
        """Return a copy."""
        return flat.clone()

    def bits(self, lengths: IntArray, spec: ParamSpec) -> IntArray:
        """32 bits per element."""
        return np.asarray(BITS_PER_ELEMENT * lengths)


@dataclass(frozen=True)
class Quantisation(Compression):
    """Stochastic rounding to a grid of ``compression_bits`` bits; unbiased up to float32.

    As in QSGD (Alistarh et al., NeurIPS 2017), each element is rounded to one of the two nearest
    levels, with probabilities that preserve its mean. Here the 2^(bits - 1) - 1 levels on each side
    of 0 extend to the largest magnitude of the parameter tensor, not to its norm; each tensor has a
    scale of 32 bits, also one that stays at the cells. With 1 bit, the two levels are the largest
    magnitude and its negative. With 32 bits, the numbers are sent as they are, without scales.

    Raises:
        TypeError: ``compression_bits`` is not an integer.
        ValueError: it is out of range.
    """

    name = "quantisation"

    compression_bits: Annotated[
        int, Field(ge=1, le=MOST_BITS, description="bits per element, sign included")
    ] = 8

    def __post_init__(self) -> None:
        if not 1 <= whole_number("compression_bits", self.compression_bits) <= MOST_BITS:
            raise ValueError(
                f"compression_bits is {self.compression_bits}: give 1 to {MOST_BITS} bits per "
                "element."
            )

    @property
    def levels(self) -> int:
        """Number of levels on each side of 0."""
        return max(1, (1 << (self.compression_bits - 1)) - 1)

    def compress(
        self, flat: torch.Tensor, lengths: IntArray, spec: ParamSpec, streams: Sequence[Stream]
    ) -> torch.Tensor:
        """Round each parameter tensor; tensors that are all zero or not finite do not change."""
        if self.compression_bits == MOST_BITS:
            return flat.clone()
        draws = (stream.generator() for stream in streams)
        # Drawn on the CPU, so that all devices round identically.
        uniform = torch.stack(
            [torch.from_numpy(draw.random(spec.size, dtype="float32")) for draw in draws]
        ).to(flat.device)
        sizes = [math.prod(shape) for shape in spec.shapes.values()]
        parts = zip(*(x.split_with_sizes(sizes, -1) for x in (flat, uniform)), strict=True)
        return torch.cat([self._rounded(x, u) for x, u in parts if x.shape[-1]], -1)

    def _rounded(self, x: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
        """Round one parameter tensor x [rows, elements] with ``uniform`` numbers in [0, 1)."""
        # A tensor: for a Python number, GPUs multiply by its reciprocal, which rounds differently.
        levels = torch.full_like(x[:, :1], self.levels)
        scale = x.abs().amax(-1, keepdim=True)
        if self.compression_bits == 1:
            rounded = torch.where(uniform < 0.5 * (1 + x / scale), scale, -scale)
        else:
            # Divide by the scale first: scale / levels would underflow to 0 for the smallest.
            height = x.abs() / scale * levels
            below = height.floor()
            level = below + (uniform < height - below)
            rounded = x.sign() * (level / levels) * scale
        return torch.where((scale > 0) & (scale < math.inf), rounded, x)

    def bits(self, lengths: IntArray, spec: ParamSpec) -> IntArray:
        """``compression_bits`` per element, and a float32 scale per tensor."""
        tensors = sum(math.prod(shape) > 0 for shape in spec.shapes.values())
        scales = 0 if self.compression_bits == MOST_BITS else BITS_PER_ELEMENT * tensors
        return np.asarray(np.where(lengths > 0, self.compression_bits * lengths + scales, 0))


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
            description="fraction of the elements of the model or submodel to send; at least one",
        ),
    ] = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.compression_keep <= 1.0:
            raise ValueError(
                f"compression_keep is {self.compression_keep}: give a fraction in (0, 1]."
            )

    def _counts(self, lengths: IntArray) -> IntArray:
        """Number of elements k that are sent of vectors of these lengths, a whole number."""
        counts = np.rint(self.compression_keep * lengths).astype(np.int64)
        return np.asarray(np.minimum(np.maximum(counts, 1), lengths))

    def compress(
        self, flat: torch.Tensor, lengths: IntArray, spec: ParamSpec, streams: Sequence[Stream]
    ) -> torch.Tensor:
        """Keep the k_j largest magnitudes of row j; of equal ones the first."""
        counts = np.maximum(self._counts(lengths), 1)
        count = torch.from_numpy(counts).to(flat.device)[:, None]
        # NaN ranks first, like infinity, so that divergence stays visible.
        size = flat.abs().nan_to_num(nan=math.inf, posinf=math.inf)
        most = int(counts.max())
        if counts.min() == most:  # a partition finds the k-th largest without sorting the rest
            smallest = size.topk(most, sorted=False).values.amin(-1, keepdim=True)
        else:
            smallest = size.topk(most).values.gather(-1, count - 1)
        above, equal = size > smallest, size == smallest
        ties = count - above.sum(-1, keepdim=True)
        kept = above | (equal & (equal.cumsum(-1, dtype=torch.int32) <= ties))
        return torch.where(kept, flat, 0.0)

    def bits(self, lengths: IntArray, spec: ParamSpec) -> IntArray:
        """Bits of the shortest of three formats of the k elements.

        Formats: values with indices of ceil(log2 P) bits; values and a bitmap; all elements. Of 650
        elements, ``compression_keep`` 0.01 sends 6 values and 6 indices of 10 bits, 252 bits.
        """
        counts = self._counts(lengths)
        width = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
        indices, bitmap = counts * (BITS_PER_ELEMENT + width), counts * BITS_PER_ELEMENT + lengths
        return np.asarray(np.minimum(np.minimum(indices, bitmap), BITS_PER_ELEMENT * lengths))


@dataclass(frozen=True)
class Sign(Compression):
    """The signs, times the mean magnitude: s sign(x), s = ||x||_1 / P; 1 bit per element, biased.

    Scaled signs (Karimireddy et al., ICML 2019) have the least error of all s sign(x). One scale of
    32 bits serves the whole vector; 0 counts as positive.
    """

    name = "sign"

    def compress(
        self, flat: torch.Tensor, lengths: IntArray, spec: ParamSpec, streams: Sequence[Stream]
    ) -> torch.Tensor:
        """Scaled signs; rows that are not finite do not change."""
        count = torch.from_numpy(np.maximum(lengths, 1)).to(flat.device)[:, None]
        scale = (flat.abs().sum(-1, keepdim=True, dtype=torch.float64) / count).to(flat.dtype)
        return torch.where(scale.isfinite(), torch.where(flat < 0, -scale, scale), flat)

    def bits(self, lengths: IntArray, spec: ParamSpec) -> IntArray:
        """1 bit per element, and the float32 scale."""
        return np.asarray(np.where(lengths > 0, lengths + BITS_PER_ELEMENT, 0))


DIGITAL = Suits(
    lambda run, _: run.uplink.gives == "each",
    'uplink_compression="{run.settings.tables[uplink_compression][name]}" conflicts with uplink '
    '"{run.uplink.title}", over which elements are sent as analog numbers, not as bits: choose '
    'uplink "tdma", "ofdma" or "fixed"',
)
CHANGES = Suits(
    lambda run, _: run.settings.rule.payloads[0].change,
    'uplink_compression="{run.settings.tables[uplink_compression][name]}" conflicts with algorithm '
    '"{run.title}", whose clients send models, not changes of models: choose an algorithm such as '
    "fedbuff",
)
"""Uploads whose first payload is the change of the client's model."""
OWN_STATE = Suits(
    lambda run, _: run.settings.rule.payloads[0].name not in run.settings.rule.client_state,
    'uplink_compression="{run.settings.tables[uplink_compression][name]}" conflicts with algorithm '
    '"{run.title}", whose clients keep what they send as their own state, of which the server has '
    "the mean: choose another algorithm",
)
"""A first payload that is not also state of the clients, of which the server computes the mean."""
UPLINK_COMPRESSIONS: Kind[Compression] = Kind(
    "uplink_compression",
    __name__,
    Compression,
    default="none",
    table=(DIGITAL, CHANGES, OWN_STATE),
    text="compression of the changes of the model that clients send",
    prefix="uplink_",
)
"""All compression methods, for uploads."""
DOWNLINK_COMPRESSIONS: Kind[Compression] = Kind(
    "downlink_compression",
    __name__,
    Compression,
    default="none",
    text="compression of the model on the downlink",
    prefix="downlink_",
)
"""All compression methods, for the downlink."""


__all__ = [
    "DOWNLINK_COMPRESSIONS",
    "UPLINK_COMPRESSIONS",
    "Compression",
    "Quantisation",
    "Sign",
    "TopK",
    "Uncompressed",
    "relative_errors",
]
