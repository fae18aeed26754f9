"""Local Adam: LocalAdam, and FAdamGC with gradient correction (Chen et al., Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field

from wirelessfl.algorithms.fedavg import Averaging
from wirelessfl.algorithms.tracking import Tracking
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import State


@dataclass(frozen=True)
class LocalAdam(Averaging):
    """Adam on the clients and averaging at the server: FAdamGC without tracking (Chen et al.).

    Clients use the AMSGrad form of Adam:
    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  vhat = max(vhat, v);
    x_i <- x_i - eta_l m / (sqrt(vhat) + eps), without bias correction.

    m is reset to 0 in every round. Each client keeps its v between rounds; it is 0 at first. The
    paper (Chen et al., Algorithm 1) does not say how vhat is initialised.
    """

    name = "local-adam"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size eta_l of the clients")] = 1e-3
    beta1: Annotated[float, Field(ge=0, lt=1, description="decay b1 of the first moment")] = 0.9
    beta2: Annotated[
        float,
        Field(ge=0, lt=1, description="decay b2 of the second moment; 0 uses the squared gradient"),
    ] = 0.99
    eps: Annotated[float, Field(ge=1e-30, description="added to the root of vhat")] = 1e-8
    vhat: Annotated[
        Literal["reset", "carried"],
        Field(
            description=("maximum vhat of v: reset to v in each round, or carried over by clients")
        ),
    ] = "reset"

    @property
    def client_state(self) -> tuple[str, ...]:
        """v_i and, if carried, vhat_i."""
        return (*super().client_state, *self._moments)

    @property
    def _moments(self) -> tuple[str, ...]:
        return ("second", "largest") if self.vhat == "carried" else ("second",)

    def begin(self, cohort: Cohort) -> State:
        """Start with m = 0, and with the client's v and vhat."""
        second = cohort.kept["second"]
        return {
            **super().begin(cohort),
            "first": torch.zeros_like(second),
            "second": second.clone(),
            "largest": cohort.kept.get("largest", second).clone(),
        }

    def direction(self, grads: torch.Tensor, state: State) -> torch.Tensor:
        """Update the moments, and return m / (sqrt(vhat) + eps)."""
        state["first"].lerp_(grads, 1 - self.beta1)
        state["second"].mul_(self.beta2).addcmul_(grads, grads, value=1 - self.beta2)
        torch.maximum(state["largest"], state["second"], out=state["largest"])
        return state["first"] / state["largest"].sqrt().add_(self.eps)

    def keep(self, params: torch.Tensor, state: State, cohort: Cohort) -> State:
        """Keep v_i and, if carried, vhat_i."""
        moments = {name: state[name] for name in self._moments}
        return {**super().keep(params, state, cohort), **moments}


@dataclass(frozen=True)
class FAdamGC(Tracking, LocalAdam):
    """Local Adam with gradient correction before the moments (Chen et al., 2025, Algorithm 1).

    In round t each sampled client i starts from x_i = x, m = 0, v = vhat = v_i, and K times does
        g_k: gradient of a mini-batch;  ghat = g_k + y - y_i;
        m = b1 m + (1 - b1) ghat;  v = b2 v + (1 - b2) ghat^2;  vhat = max(vhat, v);
        x_i <- x_i - eta_l m / (sqrt(vhat) + eps).
    Then v_i <- v and, if client i tracks, y_i <- (1/K) sum_k g_k.
    Server: x <- x + (eta_g / S) sum (x_i - x);  y <- y + (1/n) sum over trackers of y_i's change.

    With y = y_i = 0 it equals LocalAdam. ``vhat="carried"`` also keeps vhat between rounds.
    """

    name = "fadamgc"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients")] = 1e-3
