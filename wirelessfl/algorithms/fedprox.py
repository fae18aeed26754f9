"""FedProx: FedAvg with a proximal term in the local loss (Li et al., MLSys 2020, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.cohort import Cohort


@dataclass(frozen=True)
class FedProx(FedAvg):
    """FedAvg with a proximal term in the local loss (Li et al., MLSys 2020)."""

    mu: Annotated[float, Field(ge=0, description="weight of the proximal term; 0 gives FedAvg")] = (
        0.01
    )

    def gradient(self, grads: torch.Tensor, params: torch.Tensor, cohort: Cohort) -> torch.Tensor:
        """Gradients of loss + mu/2 ||x_i - x||^2."""
        return super().gradient(grads, params, cohort) + self.mu * (params - cohort.start)
