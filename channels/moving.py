"""Networks whose clients move: the gains of a block follow from its positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    without motion has.

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
        self, blocks: Sequence[int], clients: IntArray, cell: int | None = None
    ) -> FloatArray:
        """Gain of each link in each block over that in block 0, [blocks, clients], in dB.

        Args:
            blocks: indices of the blocks.
            clients: [clients], client indices.
            cell: the base station; None for that of each client.
        """
        start, cells = self.where.clients_m[clients], self.where.cell_of[clients]
        moves = self.positions_m(blocks, clients) - start
        if self.drawn_as is not None:
            clients = self.drawn_as[clients]
        if cell is not None:
            return self._changes(cell, clients, start, moves)
        changes = np.empty(moves.shape[:-1])
        for number in np.unique(cells).tolist():
            rows = np.flatnonzero(cells == number)
            changes[:, rows] = self._changes(number, clients[rows], start[rows], moves[:, rows])
        return changes

    def positions_m(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        """Positions in each block, [blocks, clients, 2], in metres."""
        rows = clients if self.drawn_as is None else self.drawn_as[clients]
        return self.motion.positions_m(blocks, rows)

    def _changes(
        self, cell: int, clients: IntArray, start: FloatArray, moves: FloatArray
    ) -> FloatArray:
        still: BoolArray = np.asarray(~moves.any(-1))
        if still.all():
            return np.zeros(still.shape)
        home = np.ones((1, len(clients)), dtype=np.bool_)
        first = self._losses(cell, clients, start, np.zeros((1, *start.shape)), home)
        return np.where(still, 0.0, first - self._losses(cell, clients, start, moves, still))

    def _losses(
        self, cell: int, clients: IntArray, start: FloatArray, moves: FloatArray, still: BoolArray
    ) -> FloatArray:
        """Path loss and shadowing [blocks, clients] to a base station, in dB."""
        model = self.path_loss
        apart = start + moves - self.where.base_stations_m[cell]
        distance = np.hypot(apart[..., 0], apart[..., 1]).clip(*model.range_m)
        sight = self._sight(cell, clients, distance, moves, still)
        stream = self.stream.child("shadowing")
        normal = stream.normals(cell, clients, 1)[:, 0].astype(np.float64)
        reach = model.shadowing_distance_m(sight)
        shadowing = _field(stream, cell, clients, normal, moves / reach[..., None])
        return model.loss_db(distance, sight) + model.shadowing_std_db(distance, sight) * shadowing

    def _sight(
        self,
        cell: int,
        clients: IntArray,
        distance_m: FloatArray,
        moves: FloatArray,
        still: BoolArray,
    ) -> BoolArray:
        """Lines of sight [blocks, clients]."""
        from scipy.special import ndtr, ndtri  # SciPy loads slowly

        stream = self.stream.child("line-of-sight")
        uniform = stream.uniforms(cell, clients, 1)[:, 0]
        normal = ndtri(np.maximum(uniform, 2.0**-54))
        field = ndtr(_field(stream, cell, clients, normal, moves / self.path_loss.sight_distance_m))
        return np.asarray(
            np.where(still, uniform, field) < self.path_loss.los_probability(distance_m)
        )


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
    """

    fading: Fading
    links: MovingLinks
    blocks: int | None = None

    def sampled(self, blocks: int) -> Moving:
        """Channels whose blocks are independent, and whose positions are spread over some blocks.

        Args:
            blocks: number of blocks.
        """
        return Moving(independent(self.fading), self.links, blocks)

    def changes_db(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        """Mean gain in each block over that in block 0, [blocks, clients], in dB."""
        return self.links.changes_db(self._spread(blocks), clients)

    def positions_m(self, blocks: Sequence[int], clients: IntArray) -> FloatArray:
        """Positions in each block, [blocks, clients, 2], in metres."""
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
