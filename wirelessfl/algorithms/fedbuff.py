"""FedBuff: buffered asynchronous aggregation (Nguyen et al., AISTATS 2022, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from wirelessfl.algorithms.task_rule import BufferedRule, staleness
from wirelessfl.algorithms.timing import Timing
from wirelessfl.training.cohort import State
from wirelessfl.training.payloads import Payload, Received


@dataclass(frozen=True)
class FedBuff(BufferedRule):
    """x <- x + eta_g (1/K) sum_i s_i (x_i - x_sent,i), with s_i = (1 + staleness_i)^-a.

    Args:
        staleness_exponent: a; 1/2 is the paper's, 0 weighs all alike.
    """

    name = "fedbuff"
    payloads = (Payload("update", each=True, unit="lr"),)
    uses_mean: ClassVar[bool] = False

    buffer: Annotated[int, Field(ge=1, description="K, updates that make a merge")] = 10
    staleness_exponent: Annotated[
        float, Field(ge=0, description="a of the weight (1 + staleness)^-a of an update")
    ] = 0.5

    @property
    def timing(self) -> Timing:
        """Of one task."""
        return replace(super().timing, max_tasks=1)

    def merge(self, server: State, received: Received) -> State:
        """The weighted sum over K: stale updates count less, and are not made up for."""
        each = received.each["update"]
        weights = (1 + staleness(received, each)) ** -self.staleness_exponent
        return {
            "params": server["params"] + self.server_lr * (weights * each).mean(0, keepdim=True)
        }
