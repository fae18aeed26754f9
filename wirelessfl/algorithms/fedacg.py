"""FedACG: accelerated client gradient (Kim, Kim and Han, CVPR 2024, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.cohort import Cohort, State
from wirelessfl.training.payloads import Received


@dataclass(frozen=True)
class FedACG(FedAvg):
    """Clients start where the server's momentum would carry its model, and are held near there.

    The server sends theta = w + lambda m, one vector; client i descends its loss
    + beta/2 ||theta_i - theta||^2 from there, and sends theta_i - theta. Then
    m <- lambda m + eta_g mean(theta_i - theta),  w <- w + m; the paper has eta_g = 1. m begins at
    0. Tests are of w. lambda = beta = 0 is FedAvg.

    Inside cells (``--local``) each edge server has its own m.

    Args:
        acceleration: lambda; the paper has 0.85.
        beta: weight of the proximal term; the paper has 0.01.
    """

    acceleration: Annotated[
        float, Field(ge=0, lt=1, description="lambda, decay of the server's momentum")
    ] = 0.85
    beta: Annotated[
        float, Field(ge=0, description="weight of the proximal term around what was sent")
    ] = 0.01

    def initial(self, params: Tensor) -> State:
        """m = 0."""
        return {**super().initial(params), "momentum": torch.zeros_like(params)}

    def outgoing(self, server: State) -> State:
        """W + lambda m."""
        ahead = server["params"] + self.acceleration * server["momentum"]
        return {**super().outgoing(server), "params": ahead}

    def gradient(self, grads: Tensor, params: Tensor, cohort: Cohort) -> Tensor:
        """Gradients of loss + beta/2 ||theta_i - theta||^2."""
        return super().gradient(grads, params, cohort) + self.beta * (params - cohort.start)

    @property
    def plain_sgd(self) -> bool:
        """Without the proximal term."""
        return self.momentum == self.beta == 0 and self._steps_like(FedACG)

    def merge(self, server: State, received: Received) -> State:
        """M, then w."""
        momentum = self.acceleration * server["momentum"] + self.server_lr * received.mean["update"]
        return {"params": server["params"] + momentum, "momentum": momentum}
