"""A cellular network: its cells and clients, what they have, and draws of its channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.checks import whole_number
from channels.fading import ComplexArray, Fading, FloatArray, Rayleigh, correlation_root
from channels.streams import Stream

IntArray = NDArray[np.int64]
LARGEST_DB = 300.0  # beyond, squares leave the range of single precision


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
    ) -> None:
        cells = checked_cells(cell_of)
        fading = Rayleigh() if fading is None else fading
        if not isinstance(fading, Fading):
            raise TypeError(f"fading is {fading!r}: give a model, e.g. Rayleigh() or Rician().")
        clients = ("clients", len(cells))
        values = {
            "cell_of": cells,
            "cpu_hz": _checked("cpu_hz", cpu_hz, clients, above=0),
            "snr_db": _checked("snr_db", snr_db, clients, limit=LARGEST_DB),
            "bandwidth_hz": _checked(
                "bandwidth_hz", bandwidth_hz, ("cells", int(cells[-1]) + 1), above=0
            ),
            "antennas": antennas,
            "fading": fading,
            "antenna_correlation": antenna_correlation,
            "path_gain_db": _checked("path_gain_db", path_gain_db, clients, limit=LARGEST_DB),
            "cycles_per_step": float(
                _checked("cycles_per_step", cycles_per_step, ("", 1), above=0)[0]
            ),
            "transmit_power_w": _checked("transmit_power_w", transmit_power_w, clients, least=0),
            "switched_capacitance": _checked(
                "switched_capacitance", switched_capacitance, clients, least=0
            ),
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
        return np.bincount(self.cell_of)

    @cached_property
    def _root(self) -> ComplexArray:
        return correlation_root(self.antennas, self.antenna_correlation)

    def clients_of(self, cell: int) -> IntArray:
        """Numbers of the clients of ``cell``, in order.

        Raises:
            ValueError: there is no such cell.
        """
        if not 0 <= cell < self.cells:
            raise ValueError(f"cell is {cell}: the network has cells 0 to {self.cells - 1}.")
        return np.flatnonzero(self.cell_of == cell)

    def draw(self, stream: Stream, index: int = 0) -> ChannelDraw:
        """The channels of one block.

        Args:
            stream: randomness of the channels, e.g. ``run.child("channel")``.
            index: the block, e.g. the global round; equal indices give equal channels.

        Returns:
            A draw with h [clients, antennas].
        """
        h = self.fading.draw(stream, index, self.clients, self._root)
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
        h = self.fading.draw(stream, index, uploads, self._root).astype(np.complex128)
        return np.asarray((h.real**2 + h.imag**2).sum(axis=-1))

    def draws(self, stream: Stream, indices: Iterable[int]) -> ChannelDraw:
        """The channels of several blocks, each equal to :meth:`draw` of its index.

        Returns:
            A draw with h [blocks, clients, antennas].
        """
        blocks = [self.draw(stream, index).h for index in indices]
        none = np.empty((0, self.clients, self.antennas), dtype=np.complex64)
        return ChannelDraw(self, np.stack(blocks) if blocks else none)


@dataclass(frozen=True, eq=False)
class ChannelDraw:
    """Channels of a network while they last; any leading axes count blocks.

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
        h = np.asarray(self.h, dtype=np.complex64)
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


def checked_cells(cell_of: ArrayLike) -> IntArray:
    """A read-only copy of ``cell_of``, if it numbers the cells in order and leaves out none."""
    given = np.asarray(cell_of)
    if given.ndim != 1 or not given.size or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(
            f"cell_of has shape {given.shape} and dtype {given.dtype}: give [clients] integers."
        )
    cells = given.astype(np.int64)
    steps = np.diff(cells, prepend=-1)  # so that cell 0 must come first
    down = np.flatnonzero((steps < 0) | (cells < 0))
    if down.size:
        at = down[0]
        raise ValueError(
            f"cell_of[{at}] is {cells[at]}"
            + (f" after {cells[at - 1]}" if at else "")
            + ": cells count from 0 and stand in order. Sort the clients by cell."
        )
    if (steps > 1).any():
        at = np.flatnonzero(steps > 1)[0]
        raise ValueError(
            f"cell {cells[at] - 1} has no client: number the cells 0, 1, ... and leave out none."
        )
    cells.setflags(write=False)
    return cells


def _checked(
    name: str,
    values: ArrayLike,
    axis: tuple[str, int],
    *,
    above: float = -np.inf,
    least: float = -np.inf,
    limit: float = np.inf,
) -> FloatArray:
    """A read-only copy of ``values``, one for each on ``axis``, finite and in range."""
    unit, count = axis
    given = np.asarray(values, dtype=np.float64)
    if given.shape not in {(), (count,)}:
        wanted = f"one number or [{unit}], here ({count},)" if unit else "one number"
        raise ValueError(f"{name} has shape {given.shape}: give {wanted}.")
    bad = ~(np.isfinite(given) & (given > above) & (given >= least) & (np.abs(given) <= limit))
    if bad.any():
        place = f"[{np.flatnonzero(bad)[0]}]" if given.ndim else ""
        wanted = "a finite number"
        if above > -np.inf:
            wanted += f" > {above:g}"
        if least > -np.inf:
            wanted += f" >= {least:g}"
        if limit < np.inf:
            wanted += f" within [{-limit:g}, {limit:g}]"
        raise ValueError(f"{name}{place} is {given[bad].flat[0]}: give {wanted}.")
    full = np.full(count, given)
    full.setflags(write=False)
    return full
