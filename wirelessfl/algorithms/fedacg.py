"""FedACG: accelerated client gradient (Kim, Kim and Han, CVPR 2024, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import Received, State, idle_at_zero


@dataclass(frozen=True)
class FedACG(FedAvg):
    """FedAvg from a look-ahead model along the server's momentum (Kim et al., CVPR 2024).

    The server sends one vector, theta = w + lambda m. Client i starts at theta, minimises its loss
    + beta/2 ||theta_i - theta||^2, and sends theta_i - theta. Then the server updates
    m <- lambda m + eta_g mean(theta_i - theta),  w <- w + m, with m = 0 at first. The paper has
    eta_g = 1. Evaluation uses w. With lambda = beta = 0 it equals FedAvg.

    Inside cells (``--local``) each edge server has its own m.
    """

    acceleration: Annotated[
        float,
        Field(ge=0, lt=1, description="decay lambda of the server's momentum; 0.85 in the paper"),
    ] = 0.85
    beta: Annotated[
        float,
        Field(
            ge=0,
            description=(
                "weight of the proximal term around the received model; 0.01 in the paper"
            ),
        ),
    ] = 0.01

    def initial(self, params: torch.Tensor) -> State:
        """Start with m = 0."""
        return {**super().initial(params), "momentum": torch.zeros_like(params)}

    def outgoing(self, server: State) -> State:
        """Send w + lambda m instead of w."""
        ahead = server["params"] + self.acceleration * server["momentum"]
        return {**super().outgoing(server), "params": ahead}

    @idle_at_zero("beta")
    def gradient(self, grads: torch.Tensor, params: torch.Tensor, cohort: Cohort) -> torch.Tensor:
        """Gradients of loss + beta/2 ||theta_i - theta||^2."""
        return super().gradient(grads, params, cohort) + self.beta * (params - cohort.start)

    def merge(self, server: State, received: Received) -> State:
        """Update m, then w."""
        momentum = self.acceleration * server["momentum"] + self.server_lr * received.mean["update"]
        return {"params": server["params"] + momentum, "momentum": momentum}
