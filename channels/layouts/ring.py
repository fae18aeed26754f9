"""Clients at one distance from their base station."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from channels.arguments import checked
from channels.arrays import IntArray
from channels.cells import even_cells
from channels.layouts.base import SHORTEST_M, Layout, Positions, counted
from channels.layouts.grid import centres, hexagonal_bands
from channels.path_loss.base import check_setting
from channels.streams import Stream


@dataclass(frozen=True)
class Ring(Layout):
    """All clients have the same distance to their base station, in random directions.

    The base stations of several cells are on a hexagonal grid, twice the distance apart.

    Args:
        distance_m: horizontal distance, from 1 to 100000 metres.

    Raises:
        ValueError: ``distance_m`` is out of range.
        TypeError: ``distance_m`` is not a number.
    """

    distance_m: float = 100.0

    def __post_init__(self) -> None:
        check_setting("distance_m", self.distance_m, 1, 100_000, "metres")

    @checked()
    def place(
        self,
        cells: int | None,
        clients: int | None,
        stream: Stream,
        shortest_m: float = SHORTEST_M,
    ) -> Positions:
        """See :class:`Layout`; the given distance is kept.

        Raises:
            ValueError: a cell would be empty.
        """
        cells, clients = counted(self, cells, clients)
        cell_of = even_cells(clients, cells)
        angle = 2 * math.pi * stream.child("ring").uniforms(0, np.arange(clients), 1)[:, 0]
        offsets = self.distance_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        stations = centres(cells, 2 * self.distance_m)
        return Positions(stations, stations[cell_of] + offsets, cell_of)

    def bands(self, cells: int, reuse_factor: int) -> IntArray:
        """See :class:`Layout`; a regular pattern on the hexagonal grid."""
        return hexagonal_bands(cells, reuse_factor)
