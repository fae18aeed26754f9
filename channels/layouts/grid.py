"""Layouts with base stations on a hexagonal grid, and the reuse of bands on it."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from channels.arguments import checked
from channels.arrays import FloatArray, IntArray
from channels.cells import even_cells
from channels.layouts.layout import SHORTEST_M, Layout, Positions, checked_reuse
from channels.streams import Stream, Streams


@dataclass(frozen=True)
class GridLayout(Layout):
    """Base stations on a hexagonal grid, with the clients of each cell around its own.

    Cells spiral outwards from cell 0, and clients are split evenly over them.
    """

    @property
    @abstractmethod
    def spacing_m(self) -> float:
        """Distance of neighbouring base stations, in metres."""

    @abstractmethod
    def offsets(self, rows: IntArray, stream: Stream | Streams, shortest_m: float) -> FloatArray:
        """Positions [rows, 2] relative to the base stations, in metres.

        Args:
            rows: [rows], indices of the positions, e.g. of clients; each has its own.
            stream: randomness of positions; of several networks, their streams together.
            shortest_m: minimum distance of clients that are placed at random.
        """

    @checked()
    def place(
        self,
        cells: int | None,
        clients: int | None,
        stream: Stream,
        shortest_m: float = SHORTEST_M,
    ) -> Positions:
        """See :class:`Layout`.

        Raises:
            ValueError: a number is missing, a cell would be empty, or is too small.
        """
        for name, number in (("cells", cells), ("clients", clients)):
            if number is None:
                raise ValueError(f"{name} is None: {type(self).__name__} needs a number of {name}.")
        assert cells is not None
        assert clients is not None
        cell_of = even_cells(clients, cells)
        stations = centres(cells, self.spacing_m)
        clients_m = stations[cell_of] + self.offsets(np.arange(clients), stream, shortest_m)
        return Positions(stations, clients_m, cell_of)

    def bands(self, cells: int, reuse_factor: int) -> IntArray:
        """See :class:`Layout`; a regular pattern on the hexagonal grid."""
        return hexagonal_bands(cells, reuse_factor)


def around(radius_m: FloatArray | float, turn: FloatArray) -> FloatArray:
    """Positions [clients, 2] at a radius, in the direction of ``turn`` from 0 to 1 [clients]."""
    angle = 2 * math.pi * turn
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.asarray(np.asarray(radius_m)[..., None] * directions)


def axial(cells: int) -> IntArray:
    """Axial coordinates [cells, 2] of the first sites of a spiral: the centre, then its rings."""
    sites, ring = [(0, 0)], 0
    while len(sites) < cells:
        ring += 1
        q, s = ring, 0
        # A ring starts to the right of the centre; each of its sides has ``ring`` sites.
        for step in ((-1, 1), (-1, 0), (0, -1), (1, -1), (1, 0), (0, 1)):
            for _ in range(ring):
                sites.append((q, s))
                q, s = q + step[0], s + step[1]
    return np.array(sites[:cells])


def centres(cells: int, spacing_m: float) -> FloatArray:
    """Positions [cells, 2] of base stations; neighbours are ``spacing_m`` apart."""
    q, s = axial(cells).T
    return np.stack([q + s / 2, s * (math.sqrt(3) / 2)], axis=1) * spacing_m


def hexagonal_bands(cells: int, reuse_factor: int) -> IntArray:
    """Band of each cell [cells] in the regular reuse pattern (MacDonald, 1979).

    With r = i^2 + ij + j^2 bands, the cells of a band form the lattice that is spanned by (i, j)
    and the same step turned by 60 degrees, (-j, i + j), in axial coordinates.

    Args:
        cells: number of cells.
        reuse_factor: r.
    """
    r = checked_reuse(reuse_factor)
    limit = math.isqrt(r) + 1
    shifts = [(i, j) for i in range(limit) for j in range(i + 1) if i * i + i * j + j * j == r]
    if not shifts:
        raise ValueError(
            f"reuse_factor is {r}: a hexagonal grid has regular patterns of 1, 3, 4, 7, 9, 12, "
            "13, ... bands (i^2 + ij + j^2)."
        )
    i, j = shifts[0]
    q, s = axial(cells).T
    # Two sites are in the same band where their coordinates in that lattice, times r, agree mod r.
    place = ((i + j) * q + j * s) % r * r + (i * s - j * q) % r
    # Bands are numbered in the order of the cells.
    _, first, band = np.unique(place, return_index=True, return_inverse=True)
    return np.asarray(first.argsort().argsort()[band], dtype=np.int64)
