"""FedAvg: local SGD and a mean (McMahan et al., AISTATS 2017, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.training.rules import Cohort, Received, State


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """Clients take local SGD steps from the server's model; the server averages the changes.

    Args:
        lr: step size eta_l of the clients.
        server_lr: step size eta_g of the server along the mean change; 1 is the mean of models.
    """

    name = "fedavg"

    server_lr: Annotated[
        float, Field(gt=0, description="step size of the server along the mean change")
    ] = 1.0

    def send(self, params: Tensor, state: State, cohort: Cohort) -> dict[str, Tensor]:
        """The model's change, x_H - x_0."""
        return {"update": params.sub_(cohort.start)}

    def merge(self, server: State, received: Received) -> State:
        """x <- x + eta_g times the mean of the changes."""
        return {"params": server["params"] + self.server_lr * received.mean["update"]}
