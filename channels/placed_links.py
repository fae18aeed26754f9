"""Losses between clients and base stations: path loss, lines of sight and shadowing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.association import Association, cells_of
from channels.layouts import Positions
from channels.moving import at_heights
from channels.path_loss import PathLoss
from channels.streams import Stream, Streams


@dataclass(frozen=True)
class PlacedLinks:
    """Losses between clients and base stations."""

    where: Positions
    path_loss: PathLoss
    stream: Stream
    given: bool
    """Whether the positions are the user's own."""
    drawn_as: IntArray | None = None
    """[clients], the index by which each client's links are drawn; None for its own."""

    def own(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Path loss, shadowing and line of sight of each client to its base station [clients]."""
        cells, distance = self.where.cell_of, self.where.distance_m
        try:
            self.path_loss.los_probability(distance)  # one error for all cells
        except ValueError as error:
            raise ValueError(f"{self._first_outside()}{error}") from None
        loss, shadowing = np.empty(len(cells)), np.empty(len(cells))
        sight = np.empty(len(cells), dtype=np.bool_)
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        for cell, rows in enumerate(np.split(np.arange(len(cells)), starts[1:])):
            loss[rows], shadowing[rows], sight[rows] = self._drawn(cell, rows, distance[rows])
        return loss, shadowing, sight

    def _first_outside(self) -> str:
        """Which given client is first out of the path loss's range, and what to do; else empty."""
        distance, (shortest, longest) = self.where.distance_m, self.path_loss.range_m
        [*outside] = np.flatnonzero(~((distance >= shortest) & (distance <= longest)))
        if not (self.given and outside):
            return ""
        row = outside[0]
        number = row if self.where.given_as is None else self.where.given_as[row]
        return (
            f"client {number} is {distance[row]:.4g} m from base station {self.where.cell_of[row]}:"
            " move it, or choose another path loss. "
        )

    def chosen(
        self, association: Association, antenna_gain_db: float
    ) -> tuple[Positions, tuple[FloatArray, FloatArray, BoolArray], FloatArray]:
        """Positions by the chosen cells, the terms of each client's own link, and all losses."""
        losses_db = self.losses()
        cells = cells_of(association, self.where, antenna_gain_db - losses_db)
        order = cells.argsort(kind="stable")
        given_as = order if self.where.given_as is None else self.where.given_as[order]
        watts = self.where.interference_watts
        where = Positions(
            self.where.base_stations_m,
            self.where.clients_m[order],
            cells[order],
            given_as,
            None if watts is None else watts[order],
        )
        chosen = PlacedLinks(where, self.path_loss, self.stream, self.given, order)
        return where, chosen.own(), losses_db[order]

    def losses(self) -> FloatArray:
        """Path loss and shadowing of each client to each base station [clients, cells]."""
        rows = np.arange(len(self.where.cell_of))
        losses = np.empty((len(rows), len(self.where.base_stations_m)))
        for cell in range(losses.shape[1]):
            distance = self.where.distances_to(cell).clip(*self.path_loss.range_m)
            loss, shadowing, _ = self._drawn(cell, rows, distance)
            losses[:, cell] = loss + shadowing
        return losses

    def _drawn(
        self, cell: int, clients: IntArray, distance_m: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Path loss, shadowing and line of sight of clients to the base station of a cell."""
        rows = clients if self.drawn_as is None else self.drawn_as[clients]
        station, points = self.where.base_stations_m[cell], self.where.clients_m[clients]
        return drawn_links(self.path_loss, self.stream, cell, rows, station, points, distance_m)


def drawn_links(
    path_loss: PathLoss,
    stream: Stream | Streams,
    cell: int,
    rows: IntArray,
    station_m: FloatArray,
    clients_m: FloatArray,
    distance_m: FloatArray,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Path loss, shadowing and line of sight of clients to a base station.

    Args:
        path_loss: path loss of the links.
        stream: randomness of the links of the network or networks.
        cell: the cell of the base station.
        rows: [clients], indices by which their links are drawn.
        station_m: [2 or 3], position of the base station.
        clients_m: [clients, 2 or 3], positions of the clients.
        distance_m: [clients], their horizontal distances.
    """
    uniform = stream.child("line-of-sight").uniforms(cell, rows, 1)[:, 0]
    normal = stream.child("shadowing").normals(cell, rows, 1)[:, 0].astype(np.float64)
    loss, shadowing = np.empty(len(rows)), np.empty(len(rows))
    sight = np.empty(len(rows), dtype=np.bool_)
    for model, some in at_heights(path_loss, station_m, clients_m):
        metres = distance_m[some]
        sight[some] = uniform[some] < model.los_probability(metres)
        shadowing[some] = model.shadowing_std_db(metres, sight[some]) * normal[some]
        loss[some] = model.loss_db(metres, sight[some])
    return loss, shadowing, sight
