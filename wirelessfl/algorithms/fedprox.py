"""FedProx: FedAvg whose clients are held near the global model (Li et al., MLSys 2020, Alg. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.cohort import Cohort


@dataclass(frozen=True)
class FedProx(FedAvg):
    """FedAvg with a proximal term of weight ``mu`` in every local gradient.

    Args:
        mu: proximal weight, >= 0; 0 is FedAvg.
    """

    mu: Annotated[float, Field(ge=0, description="proximal weight; 0 is FedAvg")] = 0.01

    def gradient(self, grads: Tensor, params: Tensor, cohort: Cohort) -> Tensor:
        """Gradients of loss + mu/2 ||x_i - x||^2."""
        return super().gradient(grads, params, cohort) + self.mu * (params - cohort.start)
