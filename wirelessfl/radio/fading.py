"""Fading models as settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from pydantic import Field

import channels
from channels.arrays import ComplexArray, IntArray
from channels.streams import Stream
from wirelessfl.guard import UnfitError, described, returns
from wirelessfl.needs import BUILT, DRAWN, RADIO
from wirelessfl.registry import Choice, Kind
from wirelessfl.returned import implementing


def _channels(
    value: Any,
    fading: Fading,
    stream: Stream,
    index: int,
    clients: IntArray,
    root: ComplexArray,
) -> ComplexArray:
    """Check for finite channels of all clients and antennas."""
    wanted = f"a complex NumPy array of shape {[len(clients), len(root)]}, [clients, antennas]"
    if not isinstance(value, np.ndarray) or value.dtype.kind != "c":
        raise UnfitError(described(value), wanted)
    if value.shape != (len(clients), len(root)):
        raise UnfitError(described(value), wanted)
    if not np.isfinite(value).all():
        raise UnfitError("channels that are not finite", f"{wanted}, finite")
    return value


class Fading(channels.Fading, Protocol):
    """A fading model whose channels are checked."""

    @returns(_channels)
    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """See :class:`channels.Fading`."""


@dataclass(frozen=True)
class FadingModel(Choice, ABC):
    """Base class of all fading models."""

    @returns(implementing(Fading))
    @abstractmethod
    def build(self) -> channels.Fading:
        """Create the distribution of the channel vectors."""


FADINGS: Kind[FadingModel] = Kind(
    "fading",
    __package__,
    FadingModel,
    default="rayleigh",
    needs=(*RADIO, DRAWN),
    table=BUILT,
    text="block fading",
    heading="network",
)
"""All fading models."""


@dataclass(frozen=True)
class Rayleigh(FadingModel):
    """Rayleigh block fading: no line-of-sight path."""

    name: ClassVar[str] = "rayleigh"

    def build(self) -> channels.Fading:
        """Create ``channels.Rayleigh``."""
        return channels.Rayleigh()


@dataclass(frozen=True)
class Rician(FadingModel):
    """Rician block fading: a line-of-sight path and scattered paths.

    Args:
        rician_k_db: power of the line-of-sight path over that of the scattered paths, in dB.
    """

    name: ClassVar[str] = "rician"

    rician_k_db: Annotated[float, Field(ge=-100, le=100, description="Rician K factor, dB")] = 6.0

    def build(self) -> channels.Fading:
        """Create ``channels.Rician``."""
        return channels.Rician(self.rician_k_db)
