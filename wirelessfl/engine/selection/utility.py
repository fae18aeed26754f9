"""Clients of large loss that are not slow, and a share of clients that were never tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.cells import smallest_by_cell
from wirelessfl.engine.selection.selection import Candidates, Selection


@dataclass(frozen=True)
class Utility(Selection):
    """Clients of each cell of largest utility, and untried ones; biased to large losses and speed.

    After Oort (Lai, Zhu, Madhyastha and Chowdhury, OSDI 2021, Algorithm 1): the utility of a client
    that has taken part is

        U_i = (w_i L_i / max_k w_k L_k + sqrt(0.1 ln r / r_i)) min(1, T / t_i)^a,

    with its weight w_i in the mean, its loss L_i, the round r, the last round r_i in which it took
    part, and its last seconds t_i; T is a quantile of the t_k of the cell. A share of the
    participants, which decays with the rounds, are random clients that have never taken part.
    Unlike in Oort, L_i is the mean loss of the model after the client's last round, not the root of
    the mean squared losses during it; T is a fixed quantile; and the largest utilities are taken,
    not drawn among those near the largest.
    """

    wants_losses: ClassVar[bool] = True

    explore: Annotated[
        float, Field(ge=0, le=1, description="share of untried clients in the first round")
    ] = 0.9
    explore_decay: Annotated[
        float, Field(gt=0, le=1, description="factor of this share from round to round")
    ] = 0.98
    explore_min: Annotated[
        float, Field(ge=0, le=1, description="minimum share of untried clients")
    ] = 0.2
    preferred_quantile: Annotated[
        float,
        Field(ge=0, le=1, description="quantile of the seconds above which clients count as slow"),
    ] = 0.5
    slow_penalty: Annotated[
        float,
        Field(ge=0, description="a, exponent of this quantile over the seconds of slow clients"),
    ] = 2.0
    utility_samples: Annotated[
        int, Field(ge=1, description="maximum number of samples on which a loss is evaluated")
    ] = 256

    def select(self, candidates: Candidates) -> IntArray:
        """Take the largest utilities, and draw untried clients."""
        counts, node, stream = candidates.counts, candidates.node, candidates.stream
        tried = candidates.history.times_chosen > 0
        with_round, without = (np.bincount(node[w], minlength=len(counts)) for w in (tried, ~tried))
        share = max(self.explore_min, self.explore * self.explore_decay**candidates.round)
        part = np.floor(share * counts + stream.child("share").generator().random(len(counts)))
        new = np.minimum(np.maximum(part.astype(np.int64), counts - with_round), without)
        waits = np.full(len(tried), np.inf)
        waits[~tried] = stream.child("untried").generator().random(int(without.sum()))
        value = np.full(len(tried), np.inf)
        value[tried] = -self.utilities(candidates, tried)
        return candidates.where(
            smallest_by_cell(waits, node, new) | smallest_by_cell(value, node, counts - new)
        )

    def utilities(self, candidates: Candidates, tried: BoolArray) -> FloatArray:
        """Utilities of the candidates that have taken part, [tried]; see the class.

        Losses that have become known since the last selection are those of the current model.
        """
        past, node = candidates.history, candidates.node[tried]
        loss = past.loss.copy()
        fresh = tried & ((past.since_chosen == 1) | np.isnan(loss))
        if fresh.any():
            loss[fresh] = candidates.losses(candidates.clients[fresh], self.utility_samples)
        # A loss that is not finite is the largest.
        value = np.where(np.isfinite(loss), loss, np.finfo(np.float32).max)[tried]
        if candidates.weights is not None:
            value = value * candidates.weights[tried]
        seconds, since = past.last_seconds[tried], past.since_chosen[tried]
        largest, preferred = np.ones((2, len(candidates.counts)))
        for cell in np.unique(node):
            here = node == cell
            largest[cell] = max(value[here].max(), np.finfo(np.float32).tiny)
            preferred[cell] = np.quantile(seconds[here], self.preferred_quantile)
        rounds = candidates.ledger.rounds + 1.0
        bonus = np.sqrt(0.1 * np.log(rounds) / (rounds - since))
        speed = np.minimum(1.0, preferred[node] / np.maximum(seconds, np.finfo(np.float64).tiny))
        return np.asarray((value / largest[node] + bonus) * speed**self.slow_penalty)
