"""FedBuff: buffered asynchronous aggregation (Nguyen et al., AISTATS 2022, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from wirelessfl.algorithms.sync_st import TaskRule, staleness
from wirelessfl.base.needs import STALE
from wirelessfl.training.rules import Payload, Received, State


@dataclass(frozen=True)
class FedBuff(TaskRule):
    """Buffered asynchronous FedAvg, weighted by staleness (Nguyen et al., AISTATS 2022).

    x <- x + eta_g (1/K) sum_i s_i (x_i - x_sent,i), with s_i = (1 + staleness_i)^-a.
    """

    name = "fedbuff"
    payloads = (Payload("update", each=True, mean=False, unit="lr"),)

    staleness_exponent: Annotated[
        float,
        Field(
            ge=0,
            description=("exponent a of an update's weight (1 + staleness)^-a; 1/2 in the paper"),
        ),
        STALE,
    ] = 0.5

    def merge(self, server: State, received: Received) -> State:
        """Step along the weighted sum divided by K; the weights are not normalised to sum 1."""
        updates, params = received.each["update"], server["params"].clone()
        weights = (1 + staleness(received, updates)) ** -self.staleness_exponent
        for node in np.unique(received.node).tolist():
            rows = np.flatnonzero(received.node == node)
            params[node] += self.server_lr * (weights * updates)[rows].mean(0)
        return {"params": params}
