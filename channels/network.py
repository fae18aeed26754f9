"""A cellular network: cells, clients, their properties, and draws of their channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked, is_numeric
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.by_client import ByClientField, Listed, stored_by_cell
from channels.fading import Fading, FadingByClient, Rayleigh, correlation_root
from channels.streams import Stream
from channels.validation import (
    as_array,
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
LARGEST_DB = 300.0  # beyond this, squared amplitudes overflow single precision


@checked()
def even_cells(clients: int, cells: int) -> IntArray:
    """Split clients evenly over cells; sizes differ by at most one, and larger cells come first.

    Args:
        clients: total number of clients, >= ``cells``.
        cells: number of cells, >= 1.

    Returns:
        cell_of [clients], sorted.

    Raises:
        ValueError: some cell would be empty.
        TypeError: an argument is not an integer.
    """
    clients, cells = whole_number("clients", clients), whole_number("cells", cells)
    if cells < 1 or clients < cells:
        raise ValueError(
            f"clients is {clients} and cells is {cells}: give at least one cell, and at least one "
            "client per cell."
        )
    sizes = [len(part) for part in np.array_split(np.empty(clients, dtype=np.bool_), cells)]
    return np.repeat(np.arange(cells), sizes)


@dataclass(frozen=True, eq=False, init=False)
class Network:
    """Cells with their clients and one multi-antenna edge server per cell; immutable.

    Where a shape is [clients] or [cells], one number applies to all. Downlink and backhaul are not
    modelled.

    Args:
        cell_of: [clients], the cell of each client: 0, 1, ... in increasing order, without gaps.
        cpu_hz: F_i [clients], CPU cycles per second, > 0.
        snr_db: [clients], transmit SNR P / sigma_0^2 over the whole band and per antenna, in dB;
            within [-300, 300].
        bandwidth_hz: B [cells], > 0. Cells do not interfere.
        antennas: M, number of antennas per edge server, >= 1.
        fading: model of small-scale fading; None means Rayleigh fading.
        antenna_correlation: rho of the exponential model, |rho| < 1.
        path_gain_db: [clients], mean channel power per antenna, in dB; within [-300, 300].
        cycles_per_step: V_0, CPU cycles per mini-batch step of the full model, > 0.
        transmit_power_w: [clients], power of a transmitting client in watts, >= 0. It determines
            energy only: rates follow from ``snr_db``.
        switched_capacitance: kappa [clients] in kappa f^2 joules per cycle, >= 0.
        part: [clients], increasing indices of the clients in a larger network; None means that
            this is the whole network. In a sub-network (see :meth:`of`) cells may be empty, and
            ``bandwidth_hz`` covers all cells of the larger network.

    Raises:
        ValueError: a value is out of range, a shape does not fit, or a cell is empty or out of
            order.
        TypeError: ``fading`` is not a fading model.
    """

    bandwidth_hz: FloatArray
    antennas: int
    fading: Fading
    antenna_correlation: complex
    cycles_per_step: float
    part: IntArray | None
    cell_of: ByClientField[np.int64] = ByClientField()
    cpu_hz: ByClientField[np.float64] = ByClientField()
    snr_db: ByClientField[np.float64] = ByClientField()
    path_gain_db: ByClientField[np.float64] = ByClientField()
    transmit_power_w: ByClientField[np.float64] = ByClientField()
    switched_capacitance: ByClientField[np.float64] = ByClientField()
    _ends: IntArray = field(init=False, repr=False)  # [cells], first client after each cell

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
        by_client = {
            "cell_of": cells,
            "cpu_hz": in_range("cpu_hz", cpu_hz, clients, above=0),
            "snr_db": in_range("snr_db", snr_db, clients, limit=LARGEST_DB),
            "path_gain_db": in_range("path_gain_db", path_gain_db, clients, limit=LARGEST_DB),
            "transmit_power_w": in_range(
                "transmit_power_w", transmit_power_w, clients, min_value=0
            ),
            "switched_capacitance": in_range(
                "switched_capacitance", switched_capacitance, clients, min_value=0
            ),
        }
        ends = np.searchsorted(cells, np.arange(cell_count), side="right")
        values = {
            "bandwidth_hz": in_range("bandwidth_hz", bandwidth_hz, ("cells", cell_count), above=0),
            "antennas": antennas,
            "fading": fading,
            "antenna_correlation": antenna_correlation,
            "cycles_per_step": float(
                in_range("cycles_per_step", cycles_per_step, ("", 1), above=0)[0]
            ),
            "part": part,
            "_ends": ends,
            **{
                name: stored_by_cell(value, ends) if part is None else Listed(value)
                for name, value in by_client.items()
            },
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        correlation_root(antennas, antenna_correlation)  # raise errors here, not in a draw

    @property
    def clients(self) -> int:
        """Number of clients."""
        return int(self._ends[-1])

    @property
    def cells(self) -> int:
        """Number of cells, N."""
        return len(self.bandwidth_hz)

    @property
    def cell_starts(self) -> IntArray:
        """Index of the first client of each cell, [cells]."""
        return np.concatenate([[0], self._ends[:-1]])

    @property
    def cell_sizes(self) -> IntArray:
        """Number of clients in each cell, n_j [cells]."""
        return np.diff(self._ends, prepend=0)

    @property
    def numbers(self) -> IntArray:
        """Client indices [clients]: 0, 1, ...; in a sub-network, indices in the whole network."""
        return np.arange(self.clients) if self.part is None else self.part

    @cached_property
    def _root(self) -> ComplexArray:
        return correlation_root(self.antennas, self.antenna_correlation)

    def over_cells(self, ufunc: np.ufunc, values: FloatArray) -> FloatArray:
        """Reduce ``values`` over the clients of each cell.

        Args:
            ufunc: binary ufunc, e.g. ``np.maximum`` or ``np.add``.
            values: [..., clients].

        Returns:
            [..., cells]; 0 for a cell without a client.
        """
        found = np.zeros((*values.shape[:-1], self.cells))
        filled = np.flatnonzero(self.cell_sizes)
        found[..., filled] = ufunc.reduceat(values, self.cell_starts[filled], axis=-1)
        return found

    @checked(complex_valued=("values",))
    def by_cell(self, values: ArrayLike, fill: float = 0.0) -> FloatArray | ComplexArray:
        """One row per cell, as solvers take their clients.

        Args:
            values: [..., clients], or complex channels [..., clients, antennas].
            fill: value of the places after the last client of a cell. Solvers ignore clients
                without bits or weight, so pad sizes of uploads and weights with 0.

        Returns:
            [..., cells, clients of the largest cell], with the antennas last if there are any.

        Raises:
            ValueError: ``values`` does not have one number, or one channel, per client.
        """
        given = np.asarray(values)
        channels = np.iscomplexobj(given)
        each = given.astype(np.complex128 if channels else np.float64)
        axis = -2 if channels else -1
        if each.ndim < -axis or each.shape[axis] != self.clients:
            raise ValueError(
                f"values has shape {given.shape} and dtype {given.dtype}: give [..., clients] real "
                f"numbers, or [..., clients, antennas] complex channels, for {self.clients} "
                "clients."
            )
        each = np.moveaxis(each, axis, 0)
        width = int(self.cell_sizes.max(initial=0))
        found = np.full((self.cells, width, *each.shape[1:]), fill, each.dtype)
        found[self.cell_of, np.arange(self.clients) - self.cell_starts[self.cell_of]] = each
        return np.ascontiguousarray(np.moveaxis(found, (0, 1), (axis - 1, axis)))

    def of(self, clients: ArrayLike) -> Network:
        """The sub-network of the given clients; the cost of a draw is proportional to its size.

        The clients keep their cells and channels: a draw of the sub-network equals, bit for bit,
        these clients' rows of the draw of the whole network.

        Args:
            clients: [clients], an increasing subset of ``numbers``.

        Raises:
            ValueError: a client is not in this network, or the clients are out of order.
        """
        numbers = increasing("clients", clients)
        rows = numbers if self.part is None else np.searchsorted(self.part, numbers)
        unknown = rows >= self.clients
        if self.part is not None and not unknown.any():
            unknown = self.part[rows] != numbers
        if unknown.any():
            raise ValueError(
                f"clients contains {numbers[unknown][0]}: choose from the network's client "
                "indices, Network.numbers."
            )
        if len(numbers) == self.clients:
            return self
        return replace(
            self, part=numbers, **{name: vars(self)[name].at(rows) for name in BY_CLIENT}
        )

    @checked()
    def draw(self, stream: Stream, index: int = 0, clients: ArrayLike | None = None) -> ChannelDraw:
        """The channels of one block.

        Args:
            stream: randomness of the channels, e.g. ``run.child("channel")``.
            index: the block, e.g. the global round; equal indices give equal channels.
            clients: clients to draw, see :meth:`of`; None means all.

        Returns:
            A draw with h [clients, antennas].

        Raises:
            TypeError: an argument has the wrong type.
        """
        if clients is not None:
            return self.of(clients).draw(stream, index)
        h = self.fading.draw(stream, index, self.numbers, self._root)
        amplitude = 10 ** (self.path_gain_db / 20)
        return ChannelDraw(self, h * amplitude[:, None].astype(np.float32))

    @cached_property
    def gain_by_client(self) -> bool:
        """Whether gains without the path gain differ in distribution from client to client.

        That is so for Rician fading with correlated antennas, where it depends on the direction.
        """
        return isinstance(self.fading, FadingByClient) and self.fading.gain_by_client(self._root)

    def draw_gains(self, stream: Stream, index: int, uploads: int) -> FloatArray:
        """Channel gains ||h||^2 of independent uploads, without the path gain.

        They have no client. Where :attr:`gain_by_client` is true, draw each of them by
        :meth:`draw_gain`.

        Args:
            stream: randomness of these channels.
            index: index of the block of uploads; equal indices give equal channels.
            uploads: number of uploads.

        Returns:
            [uploads].

        Raises:
            ValueError: gains depend on the client.
        """
        if self.gain_by_client:
            raise ValueError(
                f"fading is {self.fading} and antenna_correlation {self.antenna_correlation}: a "
                "gain depends on the client. Draw the gain of each upload by draw_gain."
            )
        return self._gains(stream, index, np.arange(uploads))

    def draw_gain(self, stream: Stream, number: int, client: int) -> float:
        """Channel gain ||h||^2 of one upload, without the path gain.

        Gains of uploads with other numbers are independent, but for what stays the client's own,
        e.g. its direction.

        Args:
            stream: randomness of these channels.
            number: number of the upload.
            client: its client, from 0 to ``clients`` - 1.
        """
        row = client if self.part is None else self.part[client]
        return float(self._gains(stream, number, np.array([row]))[0])

    def _gains(self, stream: Stream, index: int, rows: IntArray) -> FloatArray:
        """||h||^2 [rows] of small-scale channels."""
        h = self.fading.draw(stream, index, rows, self._root).astype(np.complex128)
        return np.asarray((h.real**2 + h.imag**2).sum(axis=-1))

    @checked()
    def draws(
        self, stream: Stream, indices: Iterable[int], clients: ArrayLike | None = None
    ) -> ChannelDraw:
        """The channels of several blocks; each equals :meth:`draw` with its index.

        Args:
            stream: randomness of the channels.
            indices: the blocks.
            clients: clients to draw, see :meth:`of`; None means all.

        Returns:
            A draw with h [blocks, clients, antennas].

        Raises:
            TypeError: an argument has the wrong type.
        """
        if not isinstance(indices, Iterable):
            raise TypeError(f"indices is {shown(indices)}: give several blocks, e.g. range(10).")
        if clients is not None:
            return self.of(clients).draws(stream, indices)
        blocks = [self.draw(stream, index).h for index in indices]
        empty = np.empty((0, self.clients, self.antennas), dtype=np.complex64)
        return ChannelDraw(self, np.stack(blocks) if blocks else empty)


@dataclass(frozen=True, eq=False)
class ChannelDraw:
    """Channels of a network or sub-network during one block or more; leading axes index blocks.

    Args:
        network: network of the channels.
        h: [..., clients, antennas] complex64, channel of each client to its edge server, including
            the path gain.

    Raises:
        ValueError: ``h`` does not have the network's shape, or is not finite.
    """

    network: Network
    h: ComplexArray

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise TypeError(f"network is {shown(self.network)}: give a channels.Network.")
        given = as_array("h", self.h)
        if not is_numeric(given):
            raise TypeError(f"h is {shown(self.h)}: give an array of numbers.")
        h = np.array(given, dtype=np.complex64, order="C")  # a copy, as gain is cached
        shape = (self.network.clients, self.network.antennas)
        if h.shape[-2:] != shape:
            raise ValueError(f"h has shape {h.shape}: its last axes must be {shape}.")
        if not np.isfinite(h).all():
            raise ValueError("h contains NaN or infinity: check the fading model.")
        object.__setattr__(self, "h", h)

    @cached_property
    def gain(self) -> FloatArray:
        """Channel gain ||h_i||^2 [..., clients], including the path gain."""
        real, imag = self.h.real.astype(np.float64), self.h.imag.astype(np.float64)
        return np.asarray((real**2 + imag**2).sum(axis=-1))

    @property
    def snr_hz(self) -> FloatArray:
        """P g / N0 in Hz [..., clients]: the SNR in the cell's whole band times that band.

        The SNR within a band b is snr_hz / b.
        """
        network = self.network
        snr = 10 ** (network.snr_db / 10) * self.gain
        return np.asarray(snr * network.bandwidth_hz[network.cell_of])

    @property
    def gain_per_noise(self) -> FloatArray:
        """G = g / N0 in Hz/W [..., clients]: the SNR at p watts within a band b is p G / b.

        Raises:
            ValueError: a client has no transmit power, so that its SNR says nothing of its gain.
        """
        power = self.network.transmit_power_w
        if not power.all():
            raise ValueError(
                "transmit_power_w contains 0: gains per noise follow from the SNR at a positive "
                "power."
            )
        return self.snr_hz / power

    def of(self, clients: ArrayLike) -> ChannelDraw:
        """The channels of the given clients, see :meth:`Network.of`."""
        network = self.network.of(clients)
        if network is self.network:
            return self
        rows = np.searchsorted(self.network.numbers, network.numbers)
        return ChannelDraw(network, self.h.take(rows, axis=-2))
