"""The interface of a layout, and what layouts share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from channels.validation import (
    as_array,
    checked_cells,
    checked_rows,
    in_range,
    shown,
    whole_number,
)

SHORTEST_M = 10.0
"""Minimum distance of a client that is placed at random, unless its path loss has another."""
LARGEST_REUSE = 1000
"""Largest number of bands that cells reuse; the search for a regular pattern depends on it."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions in metres; clients are sorted by cell. ``placed_network`` takes them as a layout.

    >>> import numpy as np
    >>> import channels
    >>> stations, clients = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 20.0]])
    >>> channels.Positions(stations, clients, cell_of=np.array([0, 0])).distance_m.tolist()
    [5.0, 20.0]

    Args:
        base_stations_m: [cells, 2], or [cells, 3] with heights, which replace
            ``base_station_height_m`` of the path loss.
        clients_m: [clients, 2], or [clients, 3] with heights, which replace ``client_height_m``.
        cell_of: [clients], the cell of each client.
        given_as: [clients], place of each client in the order in which they were given; None if
            that is this order.
        interference_watts: [clients], interference from elsewhere while each client sends, see
            :class:`Network`; None for none.
    """

    base_stations_m: FloatArray
    clients_m: FloatArray
    cell_of: IntArray
    given_as: IntArray | None = None
    interference_watts: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("base_stations_m", "clients_m"):
            object.__setattr__(self, name, _points(name, getattr(self, name)))
        cells = checked_cells(self.cell_of)
        object.__setattr__(self, "cell_of", cells)
        for name, points, count in (
            ("clients_m", self.clients_m, len(cells)),
            ("base_stations_m", self.base_stations_m, int(cells[-1]) + 1),
        ):
            if len(points) != count:
                raise ValueError(
                    f"{name} has {len(points)} positions, and cell_of {len(cells)} clients in "
                    f"{cells[-1] + 1} cells: give {count}."
                )
        if self.given_as is not None:
            order = checked_rows("given_as", self.given_as)
            if not np.array_equal(np.sort(order), np.arange(len(cells))):
                raise ValueError(
                    f"given_as is {shown(self.given_as)}: give each place 0 to {len(cells) - 1} "
                    "once."
                )
            object.__setattr__(self, "given_as", order)
        if self.interference_watts is not None:
            watts = in_range("interference_watts", self.interference_watts, ("clients", len(cells)))
            object.__setattr__(self, "interference_watts", watts)

    def distances_to(self, cell: int) -> FloatArray:
        """Horizontal distance of each client to a cell's base station, in metres [clients]."""
        return np.asarray(np.hypot(*(self.clients_m[:, :2] - self.base_stations_m[cell, :2]).T))

    @property
    def distance_m(self) -> FloatArray:
        """Horizontal distance of each client to its own base station, in metres [clients]."""
        stations = self.base_stations_m[self.cell_of, :2]
        return np.asarray(np.hypot(*(self.clients_m[:, :2] - stations).T))


def _points(name: str, values: ArrayLike) -> FloatArray:
    """Positions [n, 2 or 3], read-only."""
    points = as_array(name, values)
    if points.ndim != 2 or points.shape[1] not in (2, 3) or points.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} has shape {points.shape} and dtype {points.dtype}: give [n, 2], or [n, 3] "
            "with heights, in metres."
        )
    points = points.astype(np.float64)
    if not np.isfinite(points).all():
        raise ValueError(f"{name} has a position that is not finite: give metres.")
    points.setflags(write=False)
    return points


class Layout(ABC):
    """A rule that places base stations and clients.

    A subclass is a frozen dataclass, whose fields are its settings. Where a layout draws positions,
    a client's position relative to its base station depends only on the stream and its index.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import channels
    >>> @dataclass(frozen=True)
    ... class Street(channels.Layout):
    ...     # One base station, and a client every ``gap_m`` metres
    ...     gap_m: float = 10.0
    ...     def place(self, cells, clients, stream, shortest_m=10.0):
    ...         x = self.gap_m * np.arange(1, clients + 1)
    ...         positions = np.stack([x, np.zeros(clients)], axis=1)
    ...         return channels.Positions(np.zeros((1, 2)), positions, np.zeros(clients, dtype=int))
    >>> Street(20.0).place(1, 3, channels.Stream(1)).distance_m.tolist()
    [20.0, 40.0, 60.0]
    """

    @abstractmethod
    def place(
        self,
        cells: int | None,
        clients: int | None,
        stream: Stream,
        shortest_m: float = SHORTEST_M,
    ) -> Positions:
        """Positions of base stations and clients.

        Args:
            cells: number of cells; None if the layout has its own.
            clients: total number of clients; None if the layout has its own.
            stream: randomness of positions.
            shortest_m: minimum distance of clients that are placed at random to their base
                station, in metres.

        Raises:
            ValueError: the numbers do not fit the layout.
        """

    def bands(self, cells: int, reuse_factor: int) -> IntArray:
        """Band of each cell [cells] if ``reuse_factor`` bands are reused: cells take turns.

        Raises:
            ValueError: the layout has no such pattern.
        """
        return bands_in_turn(cells, reuse_factor)


def bands_in_turn(cells: int, reuse_factor: int) -> IntArray:
    """Band of each cell [cells], if the cells take bands in turn."""
    return np.arange(cells) % checked_reuse(reuse_factor)


def checked_reuse(reuse_factor: int) -> int:
    """``reuse_factor``, if it is an integer from 1 to 1000."""
    factor = whole_number("reuse_factor", reuse_factor)
    if not 1 <= factor <= LARGEST_REUSE:
        raise ValueError(
            f"reuse_factor is {factor}: give 1 if all cells share one band, or up to "
            f"{LARGEST_REUSE}."
        )
    return factor
