"""Random clients, or those in turn, of oldest update, best channel, soonest end or largest loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from channels.cells import smallest_by_cell
from channels.streams import Stream
from wirelessfl.air.participants import some
from wirelessfl.air.uplinks.checked import serving
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import count_of
from wirelessfl.engine.selection.selection import AT_ONCE, Candidates, Selection, blocks_of


@dataclass(frozen=True)
class RandomSelection(Selection):
    """Clients of each cell uniformly at random; unbiased."""

    name = "random"

    unbiased: ClassVar[bool] = True

    def select(self, candidates: Candidates) -> IntArray:
        """Draw each cell's clients without replacement."""
        sizes = np.bincount(candidates.node, minlength=len(candidates.counts))
        firsts = np.cumsum(sizes) - sizes
        rows = [
            first + some(sizes[cell], candidates.counts[cell], candidates.stream.child(cell))
            for cell, first in enumerate(firsts)
        ]
        return np.asarray(candidates.clients[np.concatenate(rows)])


@dataclass(frozen=True)
class RoundRobin(Selection):
    """Clients of each cell that took part longest ago, each in turn; unbiased over many rounds."""

    name = "round-robin"

    unbiased: ClassVar[bool] = True

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by the last round of participation, then by client number."""
        return candidates.smallest(candidates.ledger.chosen[candidates.clients])


@dataclass(frozen=True)
class Age(Selection):
    """Clients of each cell whose last update to arrive is oldest; biased where uploads fail.

    Age of update (Yang, Arafa, Quek and Poor, arXiv:1910.14648): unlike in round robin, a client
    whose upload fails is chosen again. Among clients of equal age, better channels come first.
    """

    name = "age"

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by the last round of which an update arrived, then by channel."""
        ties = (lambda places: -candidates.snr_hz(places)) if candidates.radio else None
        return candidates.smallest(candidates.ledger.heard[candidates.clients], ties)


@dataclass(frozen=True)
class BestChannel(Selection):
    """Clients of each cell with the highest received SNR in this round; biased to near clients."""

    name = "best-channel"

    radio: ClassVar[bool] = True

    def select(self, candidates: Candidates) -> IntArray:
        """Sort by ``snr_hz``; clients without a channel are not chosen."""
        snr = candidates.snr_hz()
        return candidates.smallest(np.where(snr > 0, -snr, np.inf))


@dataclass(frozen=True)
class Soonest(Selection):
    """Clients of each cell with which its last update arrives soonest; biased to fast clients.

    Exactly, for training and upload in the channels of this round, see ``Access.soonest``. A client
    without a channel is chosen only if links need none.
    """

    name = "soonest"

    def select(self, candidates: Candidates) -> IntArray:
        """Ask the access; a cell with fewer clients in reach has fewer participants."""
        with serving(f"select 'soonest', round {candidates.round + 1}"):
            some = np.arange(len(candidates.clients))
            if candidates.access.ranks_alone and len(some) > AT_ONCE:
                parts = [_soonest(candidates, some[block]) for block in blocks_of(len(some))]
                some = np.concatenate(parts)
            chosen = np.zeros(len(candidates.clients), dtype=np.bool_)
            chosen[_soonest(candidates, some)] = True
        return candidates.where(chosen)


def _soonest(candidates: Candidates, places: IntArray) -> IntArray:
    """Places of the candidates that end soonest, among some of them."""
    draw = candidates.find_draw(candidates.clients[places])
    load = candidates.load.of_rows(places)
    return places[candidates.access.soonest(load, draw, candidates.counts)]


@dataclass(frozen=True)
class PowerOfChoice(Selection):
    """Clients of largest loss among random ones of each cell; biased to large losses.

    Power-of-choice (Cho, Wang and Joshi, arXiv:2010.01243): candidates of a cell are drawn without
    replacement, with probabilities proportional to their weights, and those with the largest loss
    of the current model on their own samples take part.
    """

    name = "power-of-choice"

    wants_losses: ClassVar[bool] = True

    loss_candidates: Annotated[
        int | None,
        Field(
            ge=1,
            description="candidates per cell that evaluate the model (default: twice the number of "
            "participants)",
        ),
    ] = None
    loss_samples: Annotated[
        int,
        Field(
            ge=1, description="maximum number of samples on which a candidate evaluates the model"
        ),
    ] = 256

    def check(self, per_round: int, cells: int) -> None:
        """Refuse fewer candidates than participants."""
        if self.loss_candidates is not None and self.loss_candidates * cells < per_round:
            raise ConfigError(
                f"loss_candidates={self.loss_candidates} per cell conflicts with clients_per_round="
                f"{per_round} in {count_of(cells, 'cell')}: raise loss_candidates, or lower "
                "clients_per_round."
            )

    def select(self, candidates: Candidates) -> IntArray:
        """Draw candidates, and keep those of largest loss; of equal ones, the first."""
        counts = candidates.counts
        drawn_counts = (
            2 * counts if self.loss_candidates is None else np.maximum(counts, self.loss_candidates)
        )
        sizes = np.bincount(candidates.node, minlength=len(counts))
        firsts = np.cumsum(sizes) - sizes
        drawn = [
            first
            + _drawn(
                candidates.weights,
                slice(first, first + sizes[cell]),
                min(drawn_counts[cell] if counts[cell] else 0, sizes[cell]),
                candidates.stream.child(cell),
            )
            for cell, first in enumerate(firsts)
        ]
        rows = np.concatenate(drawn)
        clients, node = candidates.clients[rows], candidates.node[rows]
        losses = candidates.losses(clients, self.loss_samples)
        # A loss that is not finite is the largest.
        value = -np.where(np.isfinite(losses), losses, np.finfo(np.float64).max)
        return np.asarray(clients[smallest_by_cell(value, node, counts)])


def _drawn(weights: FloatArray | None, part: slice, count: int, stream: Stream) -> IntArray:
    """Draw ``count`` of a cell's clients one after another, in proportion to their weights."""
    size = part.stop - part.start
    if weights is None or count == size:
        return some(size, count, stream)
    # The first of exponential clocks with these rates (Efraimidis and Spirakis, 2006).
    waits = stream.generator().standard_exponential(size)
    with np.errstate(divide="ignore"):
        waits = waits / weights[part]
    return np.sort(np.argsort(waits, kind="stable")[:count])
