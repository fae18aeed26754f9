"""FedAMS: AMSGrad at the server with max stabilisation (Wang et al., ICML 2022, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.fedadam import FedAdam
from wirelessfl.training.rules import State


@dataclass(frozen=True)
class FedAMS(FedAdam):
    """FedAvg with AMSGrad and max stabilisation at the server (Wang et al., ICML 2022).

    It is FedAdam with the maximum of all past second moments, option 1 of the paper:
    vhat <- max(vhat, v, eps);  x <- x + eta_g m / sqrt(vhat). Initially v = 0.

    Args:
        eps: minimum of vhat.
    """

    eps: Annotated[float, Field(ge=1e-30, description="minimum of the second moment")] = 1e-6

    def initial(self, params: torch.Tensor) -> State:
        """Start with m = v = 0, vhat = eps."""
        return {
            **super().initial(params),
            "second": torch.zeros_like(params),
            "largest": torch.full_like(params, self.eps),
        }

    def stepped(self, state: State) -> State:
        """Step x <- x + eta_g m / sqrt(vhat)."""
        largest = torch.maximum(state["largest"], state["second"]).clamp(min=self.eps)
        step = self.server_lr * state["first"] / largest.sqrt()
        return {**state, "largest": largest, "params": state["params"] + step}
