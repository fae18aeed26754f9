"""Clients at one distance from their base station."""

from __future__ import annotations

from dataclasses import dataclass

from channels.arrays import FloatArray, IntArray
from channels.layouts.grid import GridLayout, around
from channels.path_loss.path_loss import check_setting
from channels.streams import Stream, Streams


@dataclass(frozen=True)
class Ring(GridLayout):
    """All clients have the same distance to their base station, in random directions.

    The base stations of several cells are on a hexagonal grid, twice the distance apart.

    >>> import channels
    >>> channels.Ring(50.0).place(1, 3, channels.Stream(1)).distance_m.round(6).tolist()
    [50.0, 50.0, 50.0]

    Args:
        distance_m: horizontal distance, from 1 to 100000 metres.
    """

    distance_m: float = 100.0

    def __post_init__(self) -> None:
        check_setting("distance_m", self.distance_m, 1, 100_000, "metres")

    @property
    def spacing_m(self) -> float:
        """See :class:`GridLayout`; twice the distance."""
        return 2 * self.distance_m

    def offsets(self, rows: IntArray, stream: Stream | Streams, shortest_m: float) -> FloatArray:
        """See :class:`GridLayout`; the given distance is kept."""
        turn = stream.child("ring").uniforms(0, rows, 1)[:, 0]
        return around(self.distance_m, turn)
