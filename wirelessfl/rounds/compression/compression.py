"""The compression operator C of RA-Fed: clients start from C(theta), restricted to their mask.

The proofs in the supplement of RA-Fed (KDD '23) use C and its relative error w_2,
||C(theta) - theta|| <= w_2 ||theta||, but do not specify C. Without compression C is the identity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.guard import UnfitError, described, returns
from wirelessfl.registry import Choice
from wirelessfl.returned import number
from wirelessfl.submodels import ParamSpec
from wirelessfl.units import BITS_PER_ELEMENT


def _compressed(value: Any, compression: Compression, flat: torch.Tensor, *_: Any) -> torch.Tensor:
    """Check for a tensor like ``flat``, in new memory, that is finite where ``flat`` is."""
    wanted = f"a new {flat.dtype} tensor of shape {list(flat.shape)}"
    like = (
        isinstance(value, torch.Tensor) and value.shape == flat.shape and value.dtype == flat.dtype
    )
    if not like:
        raise UnfitError(described(value), wanted)
    if value.data_ptr() == flat.data_ptr():
        raise UnfitError("its argument flat itself", wanted)
    if bool((flat.isfinite() & ~value.isfinite()).any()):
        raise UnfitError("values that are not finite", f"{wanted}, finite where flat is finite")
    found: torch.Tensor = value.to(flat.device)
    return found


@dataclass(frozen=True)
class Compression(Choice, ABC):
    """Base class of all compression methods: the received model and its downlink bits."""

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
