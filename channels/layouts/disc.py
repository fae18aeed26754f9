"""Round cells with uniformly distributed clients."""

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
class Disc(Layout):
    """Each cell is a disc with its base station at the centre; clients are uniform in its area.

    The base stations of several cells are on a hexagonal grid, one diameter apart, so that discs
    touch. Clients keep a minimum distance to their base station.

    Args:
        radius_m: radius of a cell, from 1 to 100000 metres.

    Raises:
        ValueError: ``radius_m`` is out of range.
        TypeError: ``radius_m`` is not a number.
    """

    radius_m: float = 500.0

    def __post_init__(self) -> None:
        check_setting("radius_m", self.radius_m, 1, 100_000, "metres")

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
            ValueError: a cell would be empty, or is not larger than the minimum distance.
        """
        cells, clients = counted(self, cells, clients)
        cell_of = even_cells(clients, cells)
        if not self.radius_m > shortest_m:
            raise ValueError(
                f"radius_m is {self.radius_m:g}: give metres above {shortest_m:g}, the minimum "
                "distance of a client. A kilometre is 1000 metres."
            )
        drawn = stream.child("disc").uniforms(0, np.arange(clients), 2)
        near, far = shortest_m**2, self.radius_m**2
        radius = np.sqrt(near + drawn[:, 0] * (far - near))  # uniform in area
        angle = 2 * math.pi * drawn[:, 1]
        offsets = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        stations = centres(cells, 2 * self.radius_m)
        return Positions(stations, stations[cell_of] + offsets, cell_of)

    def bands(self, cells: int, reuse_factor: int) -> IntArray:
        """See :class:`Layout`; a regular pattern on the hexagonal grid."""
        return hexagonal_bands(cells, reuse_factor)
