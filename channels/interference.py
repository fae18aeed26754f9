"""Interference between cells that use the same band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream


@dataclass(frozen=True, eq=False)
class Interference:
    """Received power of one random active client of every other cell with the same band.

    In each block every cell has one active client, drawn uniformly among its clients, as under
    time division, or with its whole power in the receiver's band. It is added to the noise at its
    mean gain, without fading.

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

    def watts(self, stream: Stream, index: int) -> FloatArray:
        """Interference [cells] of block ``index``, in watts per antenna.

        Args:
            stream: randomness of the active clients; equal streams and indices give equal clients.
            index: the block, e.g. the global round.

        Raises:
            ValueError: the transmit powers are not known.
        """
        if self.transmit_power_w is None:
            raise ValueError("transmit_power_w is None: give a power for each client.")
        starts = np.concatenate([[0], self.ends[:-1]])
        pick = stream.uniforms(index, np.arange(len(self.ends)), 1)[:, 0]
        active = starts + np.floor(pick * (self.ends - starts)).astype(np.int64)
        heard = self.transmit_power_w[active, None] * self.gain[active]  # [sender, receiver]
        same = self.band_of[:, None] == self.band_of
        np.fill_diagonal(same, val=False)
        return np.asarray((heard * same).sum(0))

    def mean_watts(self) -> FloatArray:
        """Mean of :meth:`watts` over the active clients [cells], in watts per antenna.

        Raises:
            ValueError: the transmit powers are not known.
        """
        if self.transmit_power_w is None:
            raise ValueError("transmit_power_w is None: give a power for each client.")
        starts = np.concatenate([[0], self.ends[:-1]])
        heard = np.add.reduceat(self.transmit_power_w[:, None] * self.gain, starts, axis=0)
        same = self.band_of[:, None] == self.band_of
        np.fill_diagonal(same, val=False)
        return np.asarray((heard / (self.ends - starts)[:, None] * same).sum(0))
