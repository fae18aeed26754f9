"""Round cells with uniformly distributed clients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.layouts.grid import GridLayout, around
from channels.path_loss.path_loss import check_setting
from channels.streams import Stream, Streams


@dataclass(frozen=True)
class Disc(GridLayout):
    """Each cell is a disc with its base station at the centre; clients are uniform in its area.

    The base stations of several cells are on a hexagonal grid, one diameter apart, so that discs
    touch. Clients keep a minimum distance to their base station.

    >>> import channels
    >>> layout = channels.Disc(radius_m=200.0)
    >>> layout.place(1, 3, channels.Stream(1)).clients_m.shape
    (3, 2)

    Args:
        radius_m: radius of a cell, from 1 to 100000 metres.
    """

    radius_m: float = 500.0

    def __post_init__(self) -> None:
        check_setting("radius_m", self.radius_m, 1, 100_000, "metres")

    @property
    def spacing_m(self) -> float:
        """See :class:`GridLayout`; one diameter."""
        return 2 * self.radius_m

    def offsets(self, rows: IntArray, stream: Stream | Streams, shortest_m: float) -> FloatArray:
        """See :class:`GridLayout`."""
        if not self.radius_m > shortest_m:
            raise ValueError(
                f"radius_m is {self.radius_m:g}: give metres above {shortest_m:g}, the minimum "
                "distance of a client. A kilometre is 1000 metres."
            )
        drawn = stream.child("disc").uniforms(0, rows, 2)
        near, far = shortest_m**2, self.radius_m**2
        radius = np.sqrt(near + drawn[:, 0] * (far - near))  # uniform in area
        return around(radius, drawn[:, 1])
