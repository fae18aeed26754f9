"""Hexagonal cells with uniformly distributed clients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.layouts.grid import GridLayout
from channels.path_loss.path_loss import check_setting
from channels.streams import Stream, Streams

_CORNERS = np.array(
    [(math.cos(math.radians(a)), math.sin(math.radians(a))) for a in (30, 150, 270)]
)
"""Every second corner of a hexagon of circumradius 1."""


@dataclass(frozen=True)
class Hexagonal(GridLayout):
    """Base stations on a hexagonal grid, each at the centre of its hexagonal cell.

    Cells spiral outwards from cell 0. Clients are uniform in their cell, and keep a minimum
    distance to its base station. The grid ends with the last cell: it is not wrapped around.

    >>> import channels
    >>> layout = channels.Hexagonal(inter_site_distance_m=200.0)
    >>> layout.place(3, 6, channels.Stream(1)).cell_of.tolist()
    [0, 0, 1, 1, 2, 2]

    Args:
        inter_site_distance_m: distance of neighbouring base stations, from 1 to 100000 metres.
    """

    inter_site_distance_m: float = 500.0

    def __post_init__(self) -> None:
        check_setting("inter_site_distance_m", self.inter_site_distance_m, 1, 100_000, "metres")

    @property
    def spacing_m(self) -> float:
        """See :class:`GridLayout`."""
        return self.inter_site_distance_m

    def offsets(self, rows: IntArray, stream: Stream | Streams, shortest_m: float) -> FloatArray:
        """See :class:`GridLayout`; positions too near the base station are redrawn."""
        if not self.inter_site_distance_m > 2 * shortest_m:
            raise ValueError(
                f"inter_site_distance_m is {self.inter_site_distance_m:g}: give metres above "
                f"{2 * shortest_m:g}, twice the minimum distance of a client. A kilometre is 1000 "
                "metres."
            )
        stream = stream.child("hexagon")
        offsets, left, tries = np.zeros((len(rows), 2)), np.arange(len(rows)), 0
        while left.size:
            drawn = stream.uniforms(tries, rows[left], 3)
            # Three rhombi, each between two of the corners, fill the hexagon.
            which = np.floor(3 * drawn[:, 0]).astype(np.int64)
            first, second = _CORNERS[which], _CORNERS[(which + 1) % 3]
            points = drawn[:, 1:2] * first + drawn[:, 2:] * second
            offsets[left] = points * (self.inter_site_distance_m / math.sqrt(3))
            left = left[np.hypot(*offsets[left].T) < shortest_m]
            tries += 1
        return offsets
