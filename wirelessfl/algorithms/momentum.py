"""Local steps with globally tracked momentum: FedAvg-M, SCAFFOLD-M (Cheng et al., ICLR 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.algorithm import Algorithm
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.step_sizes import EQUAL_STEPS
from wirelessfl.algorithms.tracking import Tracking
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import Received, State


@dataclass(frozen=True)
class GlobalMomentum(Algorithm):
    """Local steps along beta g + (1 - beta) d, where d is the mean step of the last round.

    The server computes d = (1 / (S K eta_l)) sum (x - x_i) and sends it; initially d = 0. The
    server's step x - gamma d is that of FedAvg with eta_g = gamma / (K eta_l).
    """

    name = ""

    beta: Annotated[
        float,
        Field(gt=0, le=1, description="weight of the client's gradient; 1 for no momentum"),
        EQUAL_STEPS,
    ] = 0.1

    @property
    def sends(self) -> tuple[str, ...]:
        """What the base algorithm sends, and d."""
        return (*super().sends, "momentum")

    def initial(self, params: torch.Tensor) -> State:
        """Start with d = 0."""
        return {**super().initial(params), "momentum": torch.zeros_like(params)}

    def gradient(self, grads: torch.Tensor, params: torch.Tensor, cohort: Cohort) -> torch.Tensor:
        """Return beta g + (1 - beta) d."""
        gradient = super().gradient(grads, params, cohort)
        return self.beta * gradient + (1 - self.beta) * cohort.server["momentum"]

    def merge(self, server: State, received: Received) -> State:
        """Merge, and set d to the mean step of this round."""
        steps = received.local_steps * self.lr
        return {**super().merge(server, received), "momentum": -received.mean["update"] / steps}


@dataclass(frozen=True)
class FedAvgM(GlobalMomentum, FedAvg):
    """FedAvg with the last round's mean step as momentum (Cheng et al., ICLR 2024, Algorithm 1).

    Local steps follow beta g + (1 - beta) d, where d is the mean step of the last round.
    """

    name = "fedavg-m"


@dataclass(frozen=True)
class ScaffoldM(GlobalMomentum, Tracking, FedAvg):
    """SCAFFOLD with the last round's mean step as momentum (Cheng et al., ICLR 2024, Algorithm 2).

    Local steps follow beta (g + c - c_i) + (1 - beta) d, where d is the mean step of the last
    round.
    """

    name = "scaffold-m"
