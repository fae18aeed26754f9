"""The clients of an edge round whose updates arrive."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from channels.arrays import BoolArray, IntArray
from wirelessfl.uplinks.uplink import Reception


class Arrivals:
    """Passes on the payloads of those clients of a plan whose updates arrive.

    Args:
        reception: reception of their upload.
        arrived: [clients] boolean, whose updates arrive.
    """

    def __init__(self, reception: Reception, arrived: BoolArray) -> None:
        self._reception, self._arrived = reception, arrived
        self._places = np.cumsum(arrived) - 1

    def add(self, part: slice | IntArray, payloads: dict[str, Tensor]) -> None:
        """Add the payloads of the clients in ``part``: [clients, elements] by payload."""
        here = self._arrived[part]
        if here.any():
            rows = np.flatnonzero(here)
            heard = {name: value[rows] for name, value in payloads.items()}
            self._reception.add(self._places[part][here], heard)
