"""Bits of uploads and downloads of a model, counted from what is sent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from wirelessfl.air.compression import Compression
from wirelessfl.base.rows import BITS_PER_ELEMENT
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.rules import ClientRule


@dataclass(frozen=True)
class Traffic:
    """Bits of the uploads and downloads of a model, for clock, energy and traffic alike.

    On the uplink the change of the model is compressed, an algorithm's first payload; on the
    downlink the model. All other vectors have 32 bits per element, or 1 in votes over the air.

    Args:
        payloads: number of vectors in an upload with all payloads.
        sends: number of vectors that a client receives.
        spec: spec of the full model.
        up: compression of the change of the model; None for none.
        down: compression of the model; None for none.
        element_bits: bits of an element of an upload that is not compressed.
    """

    payloads: int
    sends: int
    spec: ParamSpec
    up: Compression | None = None
    down: Compression | None = None
    element_bits: int = BITS_PER_ELEMENT

    @classmethod
    def of(
        cls,
        rule: ClientRule,
        spec: ParamSpec,
        up: Compression | None = None,
        down: Compression | None = None,
        element_bits: int = BITS_PER_ELEMENT,
    ) -> Self:
        """The traffic of the clients' rule of an algorithm."""
        return cls(len(rule.payloads), len(rule.sends), spec, up, down, element_bits)

    def up_bits(self, lengths: ArrayLike, vectors: ArrayLike | None = None) -> FloatArray:
        """Bits [...] of uploads.

        Args:
            lengths: [...], elements of a vector: all of the model, or those of a submodel.
            vectors: [...], number of vectors that are sent; None for all payloads.
        """
        count = self.payloads if vectors is None else vectors
        return self._bits(self.up, lengths, count, self.element_bits)

    def down_bits(self, lengths: ArrayLike) -> FloatArray:
        """Bits [...] of downloads of vectors of these lengths [...]."""
        return self._bits(self.down, lengths, self.sends, BITS_PER_ELEMENT)

    def _bits(
        self, compression: Compression | None, lengths: ArrayLike, vectors: ArrayLike, bits: int
    ) -> FloatArray:
        length, count = np.asarray(lengths, dtype=np.float64), np.asarray(vectors)
        if compression is None:
            return np.asarray(bits * count * length)
        first = compression.bits(np.rint(length).astype(np.int64), self.spec)
        return np.where(count > 0, first + bits * (count - 1) * length, 0.0)

    def bits_per_element(self, lengths: ArrayLike, vectors: ArrayLike | None = None) -> ArrayLike:
        """Mean bits [...] of the elements of an upload, for ``channels.Load``; as ``up_bits``."""
        if self.up is None:
            return self.element_bits
        bits = self.up_bits(lengths, vectors)
        elements = np.asarray((self.payloads if vectors is None else vectors) * np.asarray(lengths))
        whole = np.full(bits.shape, float(BITS_PER_ELEMENT))
        return np.asarray(np.divide(bits, elements, out=whole, where=bits > 0))

    @cached_property
    def whole_up(self) -> float:
        """Bits of an upload of the whole model."""
        return float(self.up_bits(self.spec.size))

    @cached_property
    def whole_down(self) -> float:
        """Bits of a download of the whole model."""
        return float(self.down_bits(self.spec.size))

    def up_of(self, share: float) -> float:
        """Bits of an upload of a submodel with this fraction of the parameters."""
        return self.whole_up if share == 1.0 else float(self.up_bits(share * self.spec.size))

    def down_of(self, share: float) -> float:
        """Bits of a download of a submodel with this fraction of the parameters."""
        return self.whole_down if share == 1.0 else float(self.down_bits(share * self.spec.size))
