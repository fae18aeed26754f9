"""Networks whose clients move: the gains of a block follow from its positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType

import numpy as np

from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.delay_profile import independent
from channels.fading import Fading
from channels.layouts import Positions
from channels.mobility import Motion
from channels.path_loss import PathLoss
from channels.streams import Stream

WAVES = 64
"""Waves of which a field of shadowing is the sum."""
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class MovingLinks:
    """Gains of links whose clients move, relative to those of block 0.

    The path loss is that of the distance in the block, limited to the range of the model. The
    shadowing of a link is a Gaussian field over the ground with the correlation exp(-d / d_corr)
    between points d apart (Gudmundson 1991; d_corr of TR 38.901, Table 7.5-6). A link has a line of
    sight where a uniform field is below the model's probability at that distance; this field is the
    distribution function of a Gaussian one with the correlation distance of lines of sight (Section
    7.6.3). The fields of the links are independent. In block 0 they have the values that a network
    without motion has. Heights in the positions replace those of the path loss in each block.

    Args:
        where: positions in block 0.
        path_loss: path loss of all links.
        stream: randomness of lines of sight and shadowing, that of the network.
        motion: positions in all blocks.
        drawn_as: [clients], the index by which each client moves and its links are drawn; None for
            its own.
    """

    where: Positions
    path_loss: PathLoss
    stream: Stream
    motion: Motion
    drawn_as: IntArray | None = None

    def changes_db(
        self, blocks: Sequence[int], clients: IntArray, cells: int | IntArray | None = None
    ) -> FloatArray:
        """Gain of each link in each block over that in block 0, [blocks, clients], in dB.

        Args:
            blocks: indices of the blocks.
            clients: [clients], client indices.
            cells: the base station of all links, or of each, [clients]; None for that of the cell
                of each client in block 0.
        """
        start = self.where.clients_m[clients]
        moves = self.positions_m(blocks, clients) - start
        cells = np.broadcast_to(self.where.cell_of[clients] if cells is None else cells, len(start))
        rows_of, changes = self._drawn_as(clients), np.empty(moves.shape[:-1])
        for cell in np.unique(cells).tolist():
            rows = np.flatnonzero(cells == cell)
            changes[:, rows] = self._changes(cell, rows_of[rows], start[rows], moves[:, rows])
        return changes

    def strongest(self, block: int, clients: IntArray) -> IntArray:
        """Base station of the largest mean gain of each client [clients] in a block.

        Of equal ones, it is the first.
        """
        start, rows = self.where.clients_m[clients], self._drawn_as(clients)
        moves = self.positions_m([block], clients) - start
        best, cells = np.full(len(start), np.inf), np.zeros(len(start), dtype=np.int64)
        for cell in range(len(self.where.base_stations_m)):
            (losses_db,) = np.add(*self._losses(cell, rows, start, moves))
            nearer = losses_db < best
            best[nearer], cells[nearer] = losses_db[nearer], cell
        return cells

    def losses_db(self, clients: IntArray, cells: IntArray) -> tuple[FloatArray, FloatArray]:
        """Path loss and shadowing in block 0 of links to the base stations ``cells``, [clients]."""
        start, rows_of = self.where.clients_m[clients], self._drawn_as(clients)
        loss_db, shadowing_db = np.empty(len(start)), np.empty(len(start))
        for cell in np.unique(cells).tolist():
            rows = np.flatnonzero(cells == cell)
            here = start[rows]
            (loss_db[rows],), (shadowing_db[rows],) = self._losses(
                cell, rows_of[rows], here, np.zeros((1, *here.shape))
            )
        return loss_db, shadowing_db

    def positions_m(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        """Positions in each block, [blocks, clients, 2], or 3 with heights, in metres."""
        return self.motion.positions_m(blocks, self._drawn_as(clients))

    def _drawn_as(self, clients: IntArray) -> IntArray:
        return clients if self.drawn_as is None else self.drawn_as[clients]

    def _changes(
        self, cell: int, clients: IntArray, start: FloatArray, moves: FloatArray
    ) -> FloatArray:
        still: BoolArray = np.asarray(~moves.any(-1))
        if still.all():
            return np.zeros(still.shape)
        first = np.add(*self._losses(cell, clients, start, np.zeros((1, *start.shape))))
        return np.where(still, 0.0, first - np.add(*self._losses(cell, clients, start, moves)))

    def _losses(
        self, cell: int, clients: IntArray, start: FloatArray, moves: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Path loss and shadowing [blocks, clients] to a base station, in dB."""
        from scipy.special import ndtr, ndtri  # SciPy loads slowly

        model, station, points = self.path_loss, self.where.base_stations_m[cell], start + moves
        ground, apart = moves[..., :2], points[..., :2] - station[:2]
        distance_m = np.hypot(apart[..., 0], apart[..., 1])
        models = [*at_heights(model, station, points)]
        stream = self.stream.child("line-of-sight")
        uniform = stream.uniforms(cell, clients, 1)[:, 0]
        normal = ndtri(np.maximum(uniform, 2.0**-54))
        field = ndtr(_field(stream, cell, clients, normal, ground / model.sight_distance_m))
        field = np.where(ground.any(-1), field, uniform)
        sight = np.empty(distance_m.shape, dtype=np.bool_)
        for at_height, some in models:
            distance_m[some] = distance_m[some].clip(*at_height.range_m)
            sight[some] = field[some] < at_height.los_probability(distance_m[some])
        stream = self.stream.child("shadowing")
        normal = stream.normals(cell, clients, 1)[:, 0].astype(np.float64)
        reach = model.shadowing_distance_m(sight)
        shadowing = _field(stream, cell, clients, normal, ground / reach[..., None])
        loss = np.empty(distance_m.shape)
        for at_height, some in models:
            link = distance_m[some], sight[some]
            shadowing[some] *= at_height.shadowing_std_db(*link)
            loss[some] = at_height.loss_db(*link)
        return loss, shadowing


def at_heights(
    path_loss: PathLoss, station_m: FloatArray, points_m: FloatArray
) -> Iterator[tuple[PathLoss, tuple[IntArray, ...] | EllipsisType]]:
    """A path loss at the heights of a base station and of clients, and places of those of each.

    Args:
        path_loss: the model, whose heights hold where positions have none.
        station_m: position of the base station, [2 or 3].
        points_m: positions of clients, [..., 2 or 3].
    """
    high = float(station_m[2]) if len(station_m) > 2 else None
    if points_m.shape[-1] == 2:
        yield path_loss.at_heights(high, None), ...
        return
    heights_m = points_m[..., 2]
    order = heights_m.argsort(axis=None, kind="stable")
    heights, starts = np.unique(heights_m.ravel()[order], return_index=True)
    for height, rows in zip(heights.tolist(), np.split(order, starts[1:]), strict=True):
        yield path_loss.at_heights(high, height), np.unravel_index(rows, heights_m.shape)


def _field(
    stream: Stream, cell: int, clients: IntArray, start: FloatArray, moves: FloatArray
) -> FloatArray:
    """Standard normal fields [blocks, clients] with the correlation exp(-d), given their start.

    A sum of waves W with normal amplitudes, whose wave vectors have the spectrum of exp(-d) in the
    plane, (1 + k^2)^(-3/2) / (2 pi), has this covariance C. Given the value s at the start, the
    field is W(x) + C(x) (s - W(0)).

    Args:
        stream: randomness of the fields.
        cell: the base station.
        clients: [clients], client indices.
        start: s [clients].
        moves: x [blocks, clients, 2], in correlation distances from the start.
    """
    drawn = stream.child("spectrum").uniforms(cell, clients, 2 * WAVES)
    length = np.sqrt((1 - drawn[:, :WAVES]) ** -2 - 1)
    turn = 2 * np.pi * drawn[:, WAVES:]
    amplitudes = stream.child("waves").normals(cell, clients, 2 * WAVES).astype(np.float64)
    even, odd = amplitudes[:, :WAVES] / np.sqrt(WAVES), amplitudes[:, WAVES:] / np.sqrt(WAVES)
    field = np.empty(moves.shape[:-1])
    for block, (x, y) in enumerate(np.moveaxis(moves, -1, 1)):
        phase = length * (np.cos(turn) * x[:, None] + np.sin(turn) * y[:, None])
        near = np.exp(-np.hypot(x, y))
        waves = (even * np.cos(phase) + odd * np.sin(phase)).sum(-1)
        field[block] = near * start + (waves - near * even.sum(-1))
    return field


@dataclass(frozen=True, eq=False)
class Moving:
    """The fading of clients that move: a :class:`channels.Fading` times the changes of mean gains.

    ``placed_network`` makes it. The mean gain of a network, ``gain_db``, is that of block 0.

    Args:
        fading: small-scale fading.
        links: mean gains.
        blocks: None to have the blocks in their order; otherwise block i is one of so many first
            ones, spread evenly, as for a sample of them.
        handover: whether the base station with the largest mean gain serves a client.
    """

    fading: Fading
    links: MovingLinks
    blocks: int | None = None
    handover: bool = False

    def sampled(self, blocks: int) -> Moving:
        """Channels whose blocks are independent, and whose positions are spread over some blocks.

        Args:
            blocks: number of blocks.
        """
        return replace(self, fading=independent(self.fading), blocks=blocks)

    def changes_db(
        self, blocks: Sequence[int], clients: IntArray, cells: IntArray | None = None
    ) -> FloatArray:
        """See :meth:`MovingLinks.changes_db`."""
        return self.links.changes_db(self._spread(blocks), clients, cells)

    def strongest(self, block: int, clients: IntArray) -> IntArray:
        """See :meth:`MovingLinks.strongest`."""
        (block,) = self._spread([block])
        return self.links.strongest(block, clients)

    def positions_m(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        """See :meth:`MovingLinks.positions_m`."""
        return self.links.positions_m(self._spread(blocks), clients)

    def _spread(self, blocks: Sequence[int]) -> Sequence[int]:
        if self.blocks is None:
            return blocks
        return [int(self.blocks * (block * GOLDEN % 1)) for block in blocks]

    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """See :class:`channels.Fading`; the mean power is that of the block."""
        h = self.fading.draw(stream, index, clients, root)
        return np.asarray(h * amplitudes(self.changes_db([index], clients)[0]))

    def gain_by_client(self, root: ComplexArray) -> bool:
        """See :class:`channels.fading.FadingByClient`: each client has its own way."""
        return True


def amplitudes(changes_db: FloatArray) -> FloatArray:
    """Factors of channels [..., 1] from changes of their gains [...], in dB."""
    return np.asarray((10 ** (changes_db / 20))[..., None].astype(np.float32))
