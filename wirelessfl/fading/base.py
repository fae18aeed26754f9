"""The interface of a fading model as a setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import channels
from channels.arrays import ComplexArray, IntArray
from channels.streams import Stream
from wirelessfl.guard import UnfitError, described, returns
from wirelessfl.registry import Choice
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
