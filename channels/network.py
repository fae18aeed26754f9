"""A cellular network: its cells and clients, what they have, and draws of its channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked, is_numeric
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.fading import Fading, Rayleigh, correlation_root
from channels.streams import Stream
from channels.validation import (
    checked_cells,
    checked_part,
    in_range,
    increasing,
    shown,
    whole_number,
)

BY_CLIENT = (
    "cell_of",
    "cpu_hz",
    "snr_db",
    "path_gain_db",
    "transmit_power_w",
    "switched_capacitance",
)
LARGEST_DB = 300.0  # beyond, squares leave the range of single precision


@checked()
def even_cells(clients: int, cells: int) -> IntArray:
    """Clients split evenly over cells; sizes differ by at most one, the first cells being larger.

    Args:
        clients: clients in all, >= ``cells``.
        cells: cells, >= 1.

    Returns:
        cell_of [clients], sorted.

    Raises:
        ValueError: some cell would be empty.
        TypeError: an argument is no integer.
    """
    clients, cells = whole_number("clients", clients), whole_number("cells", cells)
    if cells < 1 or clients < cells:
        raise ValueError(
            f"clients is {clients} and cells {cells}: there must be a cell, and in each a client."
        )
    sizes = [len(part) for part in np.array_split(np.empty(clients, dtype=np.bool_), cells)]
    return np.repeat(np.arange(cells), sizes)


@dataclass(frozen=True, eq=False, init=False)
class Network:
    """Cells of clients, each cell under an edge server with several antennas; nothing changes it.

    Where the shape says [clients] or [cells], one number stands for all. Downlink and backhaul
    are not part of it.

    Args:
        cell_of: [clients], the cell of each client: 0, 1, ... in order, none left out.
        cpu_hz: F_i [clients], CPU cycles a second, > 0.
        snr_db: [clients], transmit SNR P / sigma_0^2 over the whole band and per antenna, in dB;
            within [-300, 300].
        bandwidth_hz: B [cells], > 0. Cells do not interfere.
        antennas: M, of each edge server, >= 1.
        fading: model of the small-scale channel.
        antenna_correlation: rho of the exponential model, |rho| < 1.
        path_gain_db: [clients], mean channel power per antenna, in dB; within [-300, 300].
        cycles_per_step: V_0, CPU cycles of a mini-batch step of the full model, > 0.
        transmit_power_w: [clients], what a sending client draws, >= 0. For energy only: the rates
            follow from ``snr_db``.
        switched_capacitance: kappa [clients] of kappa f^2 joules a cycle, >= 0.
        part: [clients], the numbers that the clients have in a larger network, increasing; None:
            0, 1, .... See :meth:`of`: cells of a part may be empty, and ``bandwidth_hz`` is that
            of all.

    Raises:
        ValueError: a value is out of its range, a shape does not fit, a cell is empty or out of
            order.
        TypeError: ``fading`` is not a fading model.
    """

    cell_of: IntArray
    cpu_hz: FloatArray
    snr_db: FloatArray
    bandwidth_hz: FloatArray
    antennas: int
    fading: Fading
    antenna_correlation: complex
    path_gain_db: FloatArray
    cycles_per_step: float
    transmit_power_w: FloatArray
    switched_capacitance: FloatArray
    part: IntArray | None

    @checked()
    def __init__(
        self,
        cell_of: ArrayLike,
        *,
        cpu_hz: ArrayLike,
        snr_db: ArrayLike,
        bandwidth_hz: ArrayLike = 9e6,
        antennas: int = 10,
        fading: Fading | None = None,
        antenna_correlation: complex = 0.0,
        path_gain_db: ArrayLike = 0.0,
        cycles_per_step: float = 1e6,
        transmit_power_w: ArrayLike = 0.1,
        switched_capacitance: ArrayLike = 1e-28,
        part: ArrayLike | None = None,
    ) -> None:
        if part is None:
            cells = checked_cells(cell_of)
            cell_count = int(cells[-1]) + 1
        else:
            cell_count = np.size(bandwidth_hz)
            cells, part = checked_part(cell_of, part, cell_count)
        fading = Rayleigh() if fading is None else fading
        if not isinstance(fading, Fading):
            raise TypeError(
                f"fading is {shown(fading)}: give a model, e.g. Rayleigh() or Rician()."
            )
        clients = ("clients", len(cells))
        values = {
            "cell_of": cells,
            "cpu_hz": in_range("cpu_hz", cpu_hz, clients, above=0),
            "snr_db": in_range("snr_db", snr_db, clients, limit=LARGEST_DB),
            "bandwidth_hz": in_range("bandwidth_hz", bandwidth_hz, ("cells", cell_count), above=0),
            "antennas": antennas,
            "fading": fading,
            "antenna_correlation": antenna_correlation,
            "path_gain_db": in_range("path_gain_db", path_gain_db, clients, limit=LARGEST_DB),
            "cycles_per_step": float(
                in_range("cycles_per_step", cycles_per_step, ("", 1), above=0)[0]
            ),
            "transmit_power_w": in_range(
                "transmit_power_w", transmit_power_w, clients, min_value=0
            ),
            "switched_capacitance": in_range(
                "switched_capacitance", switched_capacitance, clients, min_value=0
            ),
            "part": part,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        correlation_root(antennas, antenna_correlation)  # an error belongs here, not in a draw

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.cell_of)

    @property
    def cells(self) -> int:
        """Number of cells, N."""
        return len(self.bandwidth_hz)

    @cached_property
    def cell_starts(self) -> IntArray:
        """[cells], the first client of each cell."""
        return np.searchsorted(self.cell_of, np.arange(self.cells))

    @cached_property
    def cell_sizes(self) -> IntArray:
        """n_j [cells], clients in each cell."""
        return np.bincount(self.cell_of, minlength=self.cells)

    @cached_property
    def numbers(self) -> IntArray:
        """[clients], their numbers: 0, 1, ..., and in a part those of the whole network."""
        return np.arange(self.clients) if self.part is None else self.part

    @cached_property
    def _root(self) -> ComplexArray:
        return correlation_root(self.antennas, self.antenna_correlation)

    def over_cells(self, ufunc: np.ufunc, values: FloatArray) -> FloatArray:
        """``ufunc`` over the clients of each cell, e.g. ``np.maximum`` or ``np.add``.

        Args:
            ufunc: of two values.
            values: [..., clients].

        Returns:
            [..., cells]; 0 for a cell without a client.
        """
        found = np.zeros((*values.shape[:-1], self.cells))
        filled = np.flatnonzero(self.cell_sizes)
        found[..., filled] = ufunc.reduceat(values, self.cell_starts[filled], axis=-1)
        return found

    def of(self, clients: ArrayLike) -> Network:
        """The sub-network of these clients, whose draws cost as much as it has clients.

        They keep their cells and their channels: a draw of the part is, bit for bit, their rows of
        the draw of the whole network.

        Args:
            clients: [clients], some of ``numbers``, increasing.

        Raises:
            ValueError: a client is not of this network, or they are out of order.
        """
        numbers = increasing("clients", clients)
        rows = numbers if self.part is None else np.searchsorted(self.part, numbers)
        unknown = rows >= self.clients
        if self.part is not None and not unknown.any():
            unknown = self.part[rows] != numbers
        if unknown.any():
            raise ValueError(
                f"clients holds {numbers[unknown][0]}: the network has no such client, see its "
                "numbers."
            )
        if len(numbers) == self.clients:
            return self
        return replace(
            self, part=numbers, **{name: getattr(self, name)[rows] for name in BY_CLIENT}
        )

    def draw(self, stream: Stream, index: int = 0, clients: ArrayLike | None = None) -> ChannelDraw:
        """The channels of one block.

        Args:
            stream: randomness of the channels, e.g. ``run.child("channel")``.
            index: the block, e.g. the global round; equal indices give equal channels.
            clients: whose channels, see :meth:`of`; None: of all.

        Returns:
            A draw with h [clients, antennas].
        """
        if clients is not None:
            return self.of(clients).draw(stream, index)
        h = self.fading.draw(stream, index, self.numbers, self._root)
        amplitude = 10 ** (self.path_gain_db / 20)
        return ChannelDraw(self, h * amplitude[:, None].astype(np.float32))

    def draw_gains(self, stream: Stream, index: int, uploads: int) -> FloatArray:
        """||h||^2 of uploads that do not happen together, without the path gain.

        Args:
            stream: randomness of such channels.
            index: the block of uploads; equal indices give equal channels.
            uploads: how many.

        Returns:
            [uploads].
        """
        h = self.fading.draw(stream, index, np.arange(uploads), self._root).astype(np.complex128)
        return np.asarray((h.real**2 + h.imag**2).sum(axis=-1))

    def draws(
        self, stream: Stream, indices: Iterable[int], clients: ArrayLike | None = None
    ) -> ChannelDraw:
        """The channels of several blocks, each equal to :meth:`draw` of its index.

        Returns:
            A draw with h [blocks, clients, antennas].
        """
        if clients is not None:
            return self.of(clients).draws(stream, indices)
        blocks = [self.draw(stream, index).h for index in indices]
        none = np.empty((0, self.clients, self.antennas), dtype=np.complex64)
        return ChannelDraw(self, np.stack(blocks) if blocks else none)


@dataclass(frozen=True, eq=False)
class ChannelDraw:
    """Channels of a network, or of a part of it, while they last; leading axes count blocks.

    Args:
        network: whose channels they are.
        h: [..., clients, antennas] complex64, each client to its own edge server, path gain
            included.

    Raises:
        ValueError: ``h`` does not have the network's shape, or is not finite.
    """

    network: Network
    h: ComplexArray

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise TypeError(f"network is {shown(self.network)}: give a channels.Network.")
        if not is_numeric(self.h):
            raise TypeError(f"h is {shown(self.h)}: give an array of numbers.")
        h = np.ascontiguousarray(self.h, dtype=np.complex64)
        shape = (self.network.clients, self.network.antennas)
        if h.shape[-2:] != shape:
            raise ValueError(f"h has shape {h.shape}: its last axes must be {shape}.")
        if not np.isfinite(h).all():
            raise ValueError("h holds a value that is not finite: check the fading model.")
        object.__setattr__(self, "h", h)

    @cached_property
    def gain(self) -> FloatArray:
        """||h_i||^2 [..., clients], path gain included."""
        real, imag = self.h.real.astype(np.float64), self.h.imag.astype(np.float64)
        return np.asarray((real**2 + imag**2).sum(axis=-1))

    def of(self, clients: ArrayLike) -> ChannelDraw:
        """The channels of some of the clients, see :meth:`Network.of`."""
        network = self.network.of(clients)
        if network is self.network:
            return self
        rows = np.searchsorted(self.network.numbers, network.numbers)
        return ChannelDraw(network, self.h.take(rows, axis=-2))
