"""Networks at positions that are drawn from many streams, all at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from channels.layouts import Disc, Hexagonal, Ring
from channels.layouts.grid import GridLayout
from channels.networks import Networks
from channels.path_loss import PathLoss
from channels.placed_links import drawn_links
from channels.placement import Placement
from channels.streams import Stream, Streams

TOGETHER = (Disc, Hexagonal, Ring)
"""Layouts whose positions are drawn by client, each from its own part of a stream."""


def drops(
    layout: GridLayout,
    path_loss: PathLoss,
    cells: int | None,
    clients: int | None,
    streams: list[Stream],
    antenna_gain_db: float,
    **others: Any,
) -> Networks:
    """Networks at positions of a layout; each equals, bit for bit, that of its stream alone.

    Args:
        layout: one of ``TOGETHER``.
        path_loss: path loss of all links.
        cells: number of cells.
        clients: number of clients of each network.
        streams: randomness of positions, lines of sight and shadowing, by network.
        antenna_gain_db: gain of the antenna elements of both ends together.
        others: further arguments of :class:`Networks`.
    """
    shortest_m = path_loss.range_m[0]
    where = layout.place(cells, clients, streams[0].child("positions"), shortest_m)
    shape = len(streams), len(where.cell_of)
    together = Streams(streams, shape[1])
    rows, cell_of = np.arange(shape[0] * shape[1]), np.tile(where.cell_of, shape[0])
    home_m = where.base_stations_m[cell_of]
    clients_m = home_m + layout.offsets(rows, together.child("positions"), shortest_m)
    distance_m = np.hypot(*(clients_m - home_m).T)
    path_loss.los_probability(distance_m)  # one error for all cells
    loss, shadowing = np.empty(len(rows)), np.empty(len(rows))
    sight = np.empty(len(rows), dtype=np.bool_)
    for cell, station_m in enumerate(where.base_stations_m):
        some = np.flatnonzero(cell_of == cell)
        loss[some], shadowing[some], sight[some] = drawn_links(
            path_loss, together, cell, some, station_m, clients_m[some], distance_m[some]
        )
    placement = Placement(
        base_stations_m=where.base_stations_m,
        clients_m=clients_m.reshape(*shape, -1),
        distance_m=distance_m.reshape(shape),
        line_of_sight=sight.reshape(shape),
        path_loss_db=loss.reshape(shape),
        shadowing_db=shadowing.reshape(shape),
        antenna_gain_db=float(antenna_gain_db),
    )
    gain_db = (antenna_gain_db - loss - shadowing).reshape(shape)
    return Networks(where.cell_of, gain_db=gain_db, placement=placement, **others)
