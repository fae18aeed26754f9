"""FedAvg: local SGD and averaging (McMahan et al., AISTATS 2017, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.algorithm import Algorithm
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import Received, State, idle_at_zero


@dataclass(frozen=True)
class Averaging(Algorithm):
    """Base class: clients take local SGD steps, and the server averages their changes.

    It has no setting ``momentum``. Algorithms derive from it if they have no momentum or define
    their own.

    Args:
        lr: client step size eta_l.
    """

    name = ""

    server_lr: Annotated[
        float,
        Field(
            gt=0,
            description=("server step size eta_g along the mean change; 1 averages the models"),
        ),
    ] = 1.0

    def send(self, params: torch.Tensor, state: State, cohort: Cohort) -> dict[str, torch.Tensor]:
        """Send the change of the model, x_H - x_0."""
        return {"update": params.sub_(cohort.start)}

    def merge(self, server: State, received: Received) -> State:
        """Step x <- x + eta_g times the mean change."""
        return {"params": server["params"] + self.server_lr * received.mean["update"]}


@dataclass(frozen=True)
class FedAvg(Averaging):
    """Local SGD, with optional momentum, and averaging (McMahan et al., AISTATS 2017)."""

    name = "fedavg"

    momentum: Annotated[
        float,
        Field(ge=0, lt=1, description="momentum of the clients' SGD, reset in each round"),
    ] = 0.0

    def begin(self, cohort: Cohort) -> State:
        """Start with velocity v = 0."""
        velocity = {"velocity": torch.zeros_like(cohort.start)} if self.momentum else {}
        return {**super().begin(cohort), **velocity}

    @idle_at_zero("momentum")
    def direction(self, grads: torch.Tensor, state: State) -> torch.Tensor:
        """Update v <- momentum v + g and return it."""
        along = super().direction(grads, state)
        if not self.momentum:
            return along
        return state["velocity"].mul_(self.momentum).add_(along)
