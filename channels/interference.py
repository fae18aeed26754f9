"""Interference between cells that use the same band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from channels.validation import as_array


@dataclass(frozen=True, eq=False)
class Interference:
    """Received power of one random active client of every other cell with the same band.

    In each block every cell has one active client, drawn uniformly among its clients. It is added
    to the noise at its mean gain, without fading. Under time division it sends in the whole band;
    under frequency division its whole power is in the band of the client that it disturbs, see
    :meth:`channels.ChannelDraw.in_bands`.

    >>> import numpy as np
    >>> import channels
    >>> heard = channels.Interference(
    ...     gain=np.array([[1e-8, 1e-10], [2e-10, 1e-8]]),
    ...     ends=np.array([1, 2]),
    ...     band_of=np.array([0, 0]),
    ...     transmit_power_w=np.array([0.1, 0.2]),
    ... )
    >>> (heard.watts(channels.Stream(1), index=0) * 1e12).round(3).tolist()  # in pW
    [40.0, 10.0]

    Args:
        gain: [clients, cells], mean channel gain, as a ratio, from each client to each cell's
            receiver.
        ends: [cells], first client after each cell.
        band_of: [cells], band of each cell; only cells with equal bands interfere.
        transmit_power_w: [clients], transmit powers; a network sets its own.
    """

    gain: FloatArray
    ends: IntArray
    band_of: IntArray
    transmit_power_w: FloatArray | None = None

    def __post_init__(self) -> None:
        gain, ends = as_array("gain", self.gain), as_array("ends", self.ends)
        if gain.ndim != 2 or ends.shape != gain.shape[1:] or ends[-1:] != len(gain):
            raise ValueError(
                f"gain has shape {gain.shape} and ends is {ends.tolist()}: give gains [clients, "
                "cells], and the first client after each cell, [cells]."
            )
        bad = ~((gain >= 0) & (gain <= 1))
        if bad.any():
            raise ValueError(
                f"gain contains {gain[bad].flat[0]}: give ratios of received to sent power, from 0 "
                "to 1. A gain of -90 dB is 1e-9."
            )
        if np.shape(self.band_of) != ends.shape:
            raise ValueError(
                f"band_of has shape {np.shape(self.band_of)}: give one band per cell, here "
                f"{ends.shape}."
            )

    def check_fits(self, clients: int, cells: int) -> None:
        """Raise unless the gains are those of so many clients and cells."""
        if self.gain.shape != (clients, cells):
            raise ValueError(
                f"interference has gains of shape {self.gain.shape}: give [clients, cells], here "
                f"{(clients, cells)}."
            )

    def watts(self, stream: Stream, index: int) -> FloatArray:
        """Interference [cells] of block ``index``, in watts per antenna.

        Args:
            stream: randomness of the active clients; equal streams and indices give equal clients.
            index: the block, e.g. the global round.

        Raises:
            ValueError: the transmit powers are not known.
        """
        sizes = self.ends - self._starts
        pick = stream.uniforms(index, np.arange(len(sizes)), 1)[:, 0]
        # A number just below 1 times the size is rounded up to the size.
        active = self._starts + np.minimum(np.floor(pick * sizes).astype(np.int64), sizes - 1)
        return self._sum(self._powers[active, None] * self.gain[active])

    def mean_watts(self) -> FloatArray:
        """Mean of :meth:`watts` over the active clients [cells], in watts per antenna.

        Raises:
            ValueError: the transmit powers are not known.
        """
        heard = np.add.reduceat(self._powers[:, None] * self.gain, self._starts, axis=0)
        return self._sum(heard / (self.ends - self._starts)[:, None])

    @property
    def _starts(self) -> IntArray:
        """First client of each cell [cells]."""
        return np.concatenate([[0], self.ends[:-1]])

    @property
    def _powers(self) -> FloatArray:
        if self.transmit_power_w is None:
            raise ValueError("transmit_power_w is None: give a power for each client.")
        return self.transmit_power_w

    def _sum(self, heard: FloatArray) -> FloatArray:
        """Sum over the other cells of each band, of powers [cell that sends, cell that hears]."""
        same = self.band_of[:, None] == self.band_of
        np.fill_diagonal(same, val=False)
        return np.asarray((heard * same).sum(0))
