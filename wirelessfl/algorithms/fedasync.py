"""FedAsync: asynchronous mixing of models (Xie et al., 2019, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.task_rule import BufferedRule, staleness
from wirelessfl.training.cohort import Cohort, State
from wirelessfl.training.payloads import Payload, Received


@dataclass(frozen=True)
class FedAsync(BufferedRule):
    """x <- (1 - alpha_t) x + alpha_t x_i with alpha_t = alpha (staleness + 1)^-a.

    Clients send their models, not changes.

    Args:
        server_lr: alpha in (0, 1].
        staleness_exponent: a of the polynomial weight; 0 is a constant one.
    """

    name = "fedasync"
    payloads = (Payload("model", each=True),)
    most_tasks: ClassVar[int | None] = 1
    uses_mean: ClassVar[bool] = False

    server_lr: Annotated[
        float, Field(gt=0, le=1, description="alpha, weight of a client's model in the mix")
    ] = 0.6
    buffer_scales: ClassVar[bool] = False
    buffer: Annotated[int, Field(ge=1, le=1, description="1: there is no buffer")] = 1
    staleness_exponent: Annotated[
        float, Field(ge=0, description="a of the weight alpha (1 + staleness)^-a")
    ] = 0.5

    def send(self, params: Tensor, state: State, cohort: Cohort) -> dict[str, Tensor]:
        """The client's model."""
        return {"model": params}

    def merge(self, server: State, received: Received) -> State:
        """Mix it in."""
        model = received.each["model"]
        weight = self.server_lr * (1 + staleness(received, model)) ** -self.staleness_exponent
        return {"params": server["params"] + weight * (model - server["params"])}
