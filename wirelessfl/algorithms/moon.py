"""MOON: FedAvg with a model-contrastive loss (Li, He and Song, CVPR 2021, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.cohort import Cohort, Contrast, Penalty
from wirelessfl.training.rules import State


@dataclass(frozen=True)
class Moon(FedAvg):
    """FedAvg with a model-contrastive term in the local loss (Li, He and Song, CVPR 2021).

    The term pulls a client's features towards those of the received model, and pushes them away
    from those of the client's previous model. Each client keeps its model from the last round in
    which it trained. In its first round the received model serves as the previous one, and the term
    is constant. For a linear model, whose features are the samples, the term is always constant.
    Inside cells with submodels (``--local moon``) a client's previous model is 0 at neurons that it
    has not trained yet.
    """

    mu: Annotated[
        float, Field(ge=0, description="weight of the contrastive term; 0 gives FedAvg")
    ] = 1.0
    tau: Annotated[float, Field(gt=0, description="temperature of the contrastive term")] = 1.0

    @property
    def penalties(self) -> tuple[Penalty, ...]:
        """The base algorithm's penalties, and the contrastive term."""
        return (*super().penalties, Contrast(self.mu, self.tau))

    @property
    def client_state(self) -> tuple[str, ...]:
        """The base algorithm's client state, and the previous model."""
        return (*super().client_state, "previous")

    def keep(self, params: torch.Tensor, state: State, cohort: Cohort) -> State:
        """Keep the client's model after its local steps."""
        return {**super().keep(params, state, cohort), "previous": params.clone()}
