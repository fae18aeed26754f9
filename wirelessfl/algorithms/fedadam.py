"""Adam, Adagrad, Yogi and AMSGrad at the server.

Reddi et al., ICLR 2021, Algorithm 2; AMSGrad: Wang et al., ICML 2022, Algorithm 1.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.rules import Received, State


@dataclass(frozen=True)
class AdaptiveServer(FedAvg):
    """Base class: clients run SGD, and the server uses their mean change D as negative gradient.

    m = b1 m + (1 - b1) D;  v from v and D^2;  x <- x + eta_g m / (sqrt(v) + eps), without bias
    correction. Initially m = 0 and v = eps^2, the minimum that the paper allows.

    Inside cells each edge server has its own moments.
    """

    name = ""

    server_lr: Annotated[float, Field(gt=0, le=1e30, description="server step size eta_g")] = 1e-2
    beta1: Annotated[float, Field(ge=0, lt=1, description="decay b1 of the first moment")] = 0.9
    eps: Annotated[
        float,
        Field(
            ge=1e-30,
            le=1e15,
            description="tau of the paper, added to the root of the second moment",
        ),
    ] = 1e-3

    def initial(self, params: torch.Tensor) -> State:
        """Start with m = 0, v = eps^2."""
        return {
            **super().initial(params),
            "first": torch.zeros_like(params),
            "second": torch.full_like(params, self.eps**2),
        }

    def merge(self, server: State, received: Received) -> State:
        """Update the moments, then take a step."""
        change = received.mean["update"]
        first = torch.lerp(server["first"], change, 1 - self.beta1)
        second = self.second_moment(server["second"], change**2)
        return self.stepped({**server, "first": first, "second": second})

    @abstractmethod
    def second_moment(self, second: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        """Next second moment v, given D^2."""

    def stepped(self, state: State) -> State:
        """Step x <- x + eta_g m / (sqrt(v) + eps)."""
        step = self.server_lr * state["first"] / (state["second"].sqrt() + self.eps)
        return {**state, "params": state["params"] + step}


@dataclass(frozen=True)
class FedAdam(AdaptiveServer):
    """FedAvg with Adam at the server (Reddi et al., ICLR 2021, Algorithm 2).

    v <- b2 v + (1 - b2) D^2 for the mean change D of the clients.
    """

    name = "fedadam"

    beta2: Annotated[float, Field(ge=0, lt=1, description="decay b2 of the second moment")] = 0.99

    def second_moment(self, second: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        """Next second moment v, given D^2."""
        return torch.lerp(second, square, 1 - self.beta2)


@dataclass(frozen=True)
class FedYogi(FedAdam):
    """FedAvg with Yogi at the server (Reddi et al., ICLR 2021, Algorithm 2).

    It is FedAdam with v <- v - (1 - b2) D^2 sign(v - D^2): the change of the second moment v is
    proportional to D^2, the squared mean change, instead of v - D^2.
    """

    name = "fedyogi"

    def second_moment(self, second: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        """Next second moment v, given D^2."""
        return second - (1 - self.beta2) * square * (second - square).sign()


@dataclass(frozen=True)
class FedAdagrad(AdaptiveServer):
    """FedAvg with Adagrad at the server (Reddi et al., ICLR 2021, Algorithm 2).

    It is FedAdam with v <- v + D^2: the second moment is the sum of all squared mean changes. b1 is
    0 by default.
    """

    name = "fedadagrad"

    beta1: Annotated[float, Field(ge=0, lt=1, description="decay of the first moment")] = 0.0

    def second_moment(self, second: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        """Next second moment v, given D^2."""
        return second + square


@dataclass(frozen=True)
class FedAMS(FedAdam):
    """FedAvg with AMSGrad and max stabilisation at the server (Wang et al., ICML 2022).

    It is FedAdam with the maximum of all past second moments, option 1 of the paper:
    vhat <- max(vhat, v, eps);  x <- x + eta_g m / sqrt(vhat). Initially v = 0.
    """

    name = "fedams"

    eps: Annotated[float, Field(ge=1e-30, description="minimum of the second moment vhat")] = 1e-6

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
