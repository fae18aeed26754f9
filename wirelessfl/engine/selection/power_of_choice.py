"""The clients on whose samples the current model is worst, of some random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from channels.cells import smallest_by_cell
from channels.streams import Stream
from wirelessfl.air.participants import some
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import count_of
from wirelessfl.engine.selection.selection import Candidates, Selection


@dataclass(frozen=True)
class PowerOfChoice(Selection):
    """Clients of largest loss among random ones of each cell; biased to large losses.

    Power-of-choice (Cho, Wang and Joshi, arXiv:2010.01243): candidates of a cell are drawn without
    replacement, with probabilities proportional to their weights, and those with the largest loss
    of the current model on their own samples take part.

    Args:
        loss_candidates: d, candidates per cell; None for twice the number of participants.
        loss_samples: largest number of samples on which a candidate evaluates the model.
    """

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
        wanted = (
            2 * counts if self.loss_candidates is None else np.maximum(counts, self.loss_candidates)
        )
        sizes = np.bincount(candidates.node, minlength=len(counts))
        firsts = np.cumsum(sizes) - sizes
        drawn = [
            first
            + _drawn(
                candidates.weights,
                slice(first, first + sizes[cell]),
                min(wanted[cell] if counts[cell] else 0, sizes[cell]),
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
