"""FedAsync: asynchronous mixing of models (Xie et al., 2019, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.sync_st import TaskRule, staleness
from wirelessfl.base.needs import STALE
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import Payload, Received, State


@dataclass(frozen=True)
class FedAsync(TaskRule):
    """Asynchronous mixing of client models, weighted by staleness (Xie et al., 2019, Algorithm 1).

    x <- (1 - alpha_t) x + alpha_t x_i with alpha_t = alpha (staleness + 1)^-a. Clients send their
    models, not the changes.
    """

    name = "fedasync"
    payloads = (Payload("model", each=True, mean=False, change=False),)

    server_lr: Annotated[
        float,
        Field(gt=0, le=1, description="mixing weight alpha of a client's model at staleness 0"),
    ] = 0.6
    staleness_exponent: Annotated[
        float,
        Field(
            ge=0,
            description=(
                "exponent a of the weight alpha (1 + staleness)^-a; 0 for a constant weight"
            ),
        ),
        STALE,
    ] = 0.5

    def send(self, params: torch.Tensor, state: State, cohort: Cohort) -> dict[str, torch.Tensor]:
        """Send the client's model."""
        return {"model": params}

    def merge(self, server: State, received: Received) -> State:
        """Mix in the models in order of arrival."""
        models, params = received.each["model"], server["params"].clone()
        weights = self.server_lr * (1 + staleness(received, models)) ** -self.staleness_exponent
        for node, weight, model in zip(received.node.tolist(), weights, models, strict=True):
            params[node] += weight * (model - params[node])
        return {"params": params}
