"""FedAvg: local SGD and a mean (McMahan et al., AISTATS 2017, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.training.rules import Cohort, Received, State


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """Clients take local SGD steps from the server's model; the server averages the changes."""

    name = "fedavg"

    def send(self, params: Tensor, state: State, cohort: Cohort) -> dict[str, Tensor]:
        """The model's change, x_H - x_0."""
        return {"update": params.sub_(cohort.start)}

    def merge(self, server: State, received: Received) -> State:
        """x <- x + mean of the changes."""
        return {"params": server["params"] + received.mean["update"]}
