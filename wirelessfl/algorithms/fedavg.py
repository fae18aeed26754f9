"""FedAvg: local SGD and a mean (McMahan et al., AISTATS 2017, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.training.cohort import Cohort, State
from wirelessfl.training.payloads import Received


@dataclass(frozen=True)
class Averaging(Algorithm):
    """Clients take local SGD steps from the server's model; the server averages the changes.

    Algorithms whose local steps have no momentum, or one of their own, derive from it.

    Args:
        lr: step size eta_l of the clients.
        server_lr: step size eta_g of the server along the mean change; 1 is the mean of models.
    """

    name = ""

    server_lr: Annotated[
        float, Field(gt=0, description="step size of the server along the mean change")
    ] = 1.0

    @property
    def server_step_size(self) -> float:
        """eta_g."""
        return self.server_lr

    def send(self, params: Tensor, state: State, cohort: Cohort) -> dict[str, Tensor]:
        """The model's change, x_H - x_0."""
        return {"update": params.sub_(cohort.start)}

    def merge(self, server: State, received: Received) -> State:
        """x <- x + eta_g times the mean of the changes."""
        return {"params": server["params"] + self.server_lr * received.mean["update"]}


@dataclass(frozen=True)
class FedAvg(Averaging):
    """Averaging of local SGD, whose steps may have momentum.

    Args:
        momentum: of the clients' SGD, x <- x - eta_l v with v <- momentum v + g, and v = 0 at the
            beginning of their local steps; no dampening, not Nesterov's.
    """

    name = "fedavg"

    momentum: Annotated[
        float,
        Field(ge=0, lt=1, description="momentum of the clients' SGD, from 0 in every round"),
    ] = 0.0

    def begin(self, cohort: Cohort) -> State:
        """The velocity, 0."""
        velocity = {"velocity": torch.zeros_like(cohort.start)} if self.momentum else {}
        return {**super().begin(cohort), **velocity}

    def direction(self, grads: Tensor, state: State) -> Tensor:
        """v <- momentum v + g."""
        along = super().direction(grads, state)
        if not self.momentum:
            return along
        return state["velocity"].mul_(self.momentum).add_(along)

    @property
    def plain_sgd(self) -> bool:
        """Without momentum."""
        return self.momentum == 0 and self._steps_like(FedAvg)
