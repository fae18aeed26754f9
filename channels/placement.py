"""Where cells and clients are, and what their links lose on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arrays import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Placement:
    """Positions and the terms of each client's mean channel gain, for all clients of a network.

    >>> import channels
    >>> place = channels.umi(cells=1, clients=3, stream=channels.Stream(1)).placement
    >>> place.clients_m.shape, place.path_loss_db.shape
    ((3, 2), (3,))

    Args:
        base_stations_m: [cells, 2], or [cells, 3] with heights, positions in metres.
        clients_m: [clients, 2 or 3], positions in metres.
        distance_m: [clients], horizontal distance of each client to its base station.
        line_of_sight: [clients] boolean; None if unknown, as of recorded channels.
        path_loss_db: [clients], median path loss, > 0; of recorded channels, the whole loss.
        shadowing_db: [clients], additional loss by shadowing, of either sign.
        antenna_gain_db: gain of the antenna elements of both ends together.
    """

    base_stations_m: FloatArray
    clients_m: FloatArray
    distance_m: FloatArray
    line_of_sight: BoolArray | None
    path_loss_db: FloatArray
    shadowing_db: FloatArray
    antenna_gain_db: float = 0.0

    def check_gains(self, gain_db: FloatArray) -> None:
        """Raise unless these gains [clients] follow from the terms of the links.

        Raises:
            ValueError: they do not, e.g. because the gains were replaced.
        """
        expected = self.antenna_gain_db - self.path_loss_db - self.shadowing_db
        if expected.shape != gain_db.shape or not np.allclose(expected, gain_db, atol=1e-6):
            raise ValueError(
                "gain_db differs from the path loss, shadowing and antenna gain of placement: give "
                "placement=None with gains of your own."
            )
