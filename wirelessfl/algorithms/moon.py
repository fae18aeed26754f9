"""MOON: FedAvg with a contrast of models in the loss (Li, He and Song, CVPR 2021, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.cohort import Cohort, Penalty, State
from wirelessfl.training.penalties import Contrast


@dataclass(frozen=True)
class Moon(FedAvg):
    """Clients' features are drawn to those of the model they were sent, away from their last ones.

    Each client keeps the model of its last turn, however long ago that was. In its first turn the
    one it is sent stands for it, and the term is constant; so it always is for a linear model,
    whose features are the samples. Inside cells with submodels (``--local moon``) a client's last
    model is 0 at neurons that it has not trained yet.

    Args:
        mu: weight of the term, see ``Contrast``; 0 is FedAvg.
        tau: its temperature.
    """

    mu: Annotated[float, Field(ge=0, description="weight of the contrast; 0 is FedAvg")] = 1.0
    tau: Annotated[float, Field(gt=0, description="temperature of the contrast")] = 1.0

    @property
    def penalties(self) -> tuple[Penalty, ...]:
        """Those without it, and the contrast."""
        return (*super().penalties, Contrast(self.mu, self.tau))

    @property
    def client_state(self) -> tuple[str, ...]:
        """What is kept without it, and the last model."""
        return (*super().client_state, "previous")

    def keep(self, params: Tensor, state: State, cohort: Cohort) -> State:
        """The client's model after its steps."""
        return {**super().keep(params, state, cohort), "previous": params.clone()}
