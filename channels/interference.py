"""Interference: of clients of other cells that use the same band, and given in watts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray
from channels.moving import MovingLinks
from channels.streams import Stream
from channels.validation import as_array, shown

Watts: TypeAlias = FloatArray | Callable[[int], ArrayLike]
"""Interference in watts, [blocks, cells], [blocks, clients] or [blocks, cells, subcarriers], or a
function of a block's number that returns [cells] or [clients]; clients are those of the whole
network, also in its parts."""
InterferenceWatts: TypeAlias = ArrayLike | Watts | None
"""The same as an argument: also one number, [cells] or [clients]."""


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
        moving: changes of the gains where clients move, which are then those of block 0; None where
            they stand still.
    """

    gain: FloatArray
    ends: IntArray
    band_of: IntArray
    transmit_power_w: FloatArray | None = None
    moving: MovingLinks | None = field(default=None, repr=False)

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
        gain = self.gain[active]
        if self.moving is not None:
            cells = range(len(sizes))
            changes_db = [self.moving.changes_db([index], active, cell)[0] for cell in cells]
            gain = gain * 10 ** (np.stack(changes_db, axis=1) / 10)
        return self._sum(self._powers[active, None] * gain)

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


@dataclass(frozen=True, eq=False)
class ActiveInterference(Interference):
    """Received power of the clients of other cells that take part in a block, at their own gains.

    Of every other cell with the same band, it is the mean over those of its clients that are drawn
    together with the victims, at their mean gains times a fading of their own: the mean over the
    slots in which they send in turn. A cell of which no client takes part does not interfere. Where
    all cells have participants that are drawn uniformly, its mean is that of
    :class:`Interference`.

    >>> import numpy as np
    >>> import channels
    >>> heard = channels.ActiveInterference(
    ...     gain=np.array([[1e-8, 1e-10], [2e-10, 1e-8]]),
    ...     ends=np.array([1, 2]),
    ...     band_of=np.array([0, 0]),
    ...     transmit_power_w=np.array([0.1, 0.2]),
    ... )
    >>> (heard.watts_of(np.array([0]), np.ones((1, 2))) * 1e12).round(3).tolist()  # client 0 alone
    [0.0, 10.0]

    Arguments are those of :class:`Interference`.
    """

    def watts_of(self, clients: IntArray, fading: FloatArray) -> FloatArray:
        """Interference [cells] by the clients that take part, in watts per antenna.

        Args:
            clients: [clients], those that take part, sorted.
            fading: [clients, cells], power gain per antenna, with mean 1, to each receiver.
        """
        heard = self._powers[clients, None] * self.gain[clients] * fading
        cell = np.searchsorted(self.ends, clients, side="right")
        total = np.zeros((len(self.ends), len(self.ends)))
        np.add.at(total, cell, heard)
        number = np.bincount(cell, minlength=len(self.ends))
        return self._sum(total / np.maximum(number, 1)[:, None])


def external_watts(
    interference_watts: Any, cells: int, clients: int, part: IntArray | None = None
) -> Watts | None:
    """Interference in watts as an array with an axis of blocks, or as a function, checked.

    Args:
        interference_watts: one number, [cells], [clients], [blocks, cells], [blocks, clients],
            [blocks, cells, subcarriers], a function of a block's number, or None.
        cells: number of cells.
        clients: number of clients.
        part: [clients], indices of a sub-network's clients; None for a whole network.

    Raises:
        ValueError: the shape does not fit, or a value is not finite or negative.
    """
    if interference_watts is None:
        return None
    if callable(interference_watts):
        function: Callable[[int], ArrayLike] = interference_watts
        return function
    array = as_array("interference_watts", interference_watts)
    if array.dtype.kind not in "iuf" or not _fits(array.shape, cells, clients, part, blocks=True):
        raise ValueError(
            f"interference_watts is {shown(interference_watts)}: give one number, [cells] or "
            "[clients], or one of these per block, or [blocks, cells, subcarriers], in watts, here "
            f"for {cells} cells and {clients} clients."
        )
    if not array.size:
        raise ValueError("interference_watts has no block or subcarrier: give one at least.")
    if part is not None and array.ndim > 1 and not array.flags.writeable:
        return array  # its values were checked when the whole network was built
    if array.shape[2:] == (1,):
        array = array[..., 0]
    if array.ndim < 2:
        array = np.broadcast_to(array, (1, array.shape[-1] if array.ndim else cells))
    watts = np.array(array, float)
    _check_watts(watts)
    watts.setflags(write=False)
    return watts


def _fits(
    shape: tuple[int, ...], cells: int, clients: int, part: IntArray | None, *, blocks: bool = False
) -> bool:
    """Whether watts of this shape are one number, or per cell, client or subcarrier of a cell."""
    if len(shape) == 3 and blocks:
        return shape[1] == cells
    if not shape or len(shape) > 1 + blocks:
        return not shape
    # A sub-network does not know how many clients the whole network has.
    by_client = shape[-1] == clients if part is None else shape[-1] > part.max(initial=0)
    return shape[-1] == cells or by_client


def watts_in(
    watts: Watts, index: int, cells: int, clients: int, part: IntArray | None = None
) -> FloatArray:
    """Interference [cells] or [clients of the whole network] in a block; recorded blocks repeat.

    Other arguments are those of :func:`external_watts`.

    Raises:
        ValueError: a function returns something else than finite numbers >= 0 in such a shape.
    """
    if not callable(watts):
        return np.asarray(watts[index % len(watts)])
    values = np.asarray(watts(index), dtype=np.float64)
    if not _fits(values.shape, cells, clients, part):
        raise ValueError(
            f"interference_watts returns shape {values.shape} for block {index}: return one "
            f"number, [cells] or [clients], here ({cells},) or ({clients},)."
        )
    _check_watts(values)
    return values if values.ndim else np.full(cells, values)


def sorted_watts(watts: InterferenceWatts, order: IntArray, cells: int) -> InterferenceWatts:
    """Interference in watts, with values of clients in the order of a network.

    Args:
        watts: see :func:`external_watts`; values of clients are in the order in which these were
            given. With as many clients as cells, values are those of cells.
        order: [clients], place of each client of the network in that order.
        cells: number of cells.
    """
    if callable(watts):
        function = watts
        return lambda block: np.asarray(sorted_watts(function(block), order, cells), np.float64)
    shape = np.shape(watts) if watts is not None else ()
    if watts is None or len(order) == cells or len(shape) > 2 or shape[-1:] != order.shape:
        return watts
    return np.asarray(watts)[..., order]


LARGEST_WATTS = 1.0
"""Largest received interference; transmit powers of clients are at most 10 W."""


def _check_watts(watts: FloatArray) -> None:
    bad = ~((watts >= 0) & (watts <= LARGEST_WATTS))
    if bad.any():
        raise ValueError(
            f"interference_watts contains {watts[bad].flat[0]:g}: give received watts from 0 to "
            f"{LARGEST_WATTS:g}. -100 dBm are 1e-13 W."
        )
