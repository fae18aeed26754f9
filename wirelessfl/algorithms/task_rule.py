"""What the algorithms of the FedAST paper share: local SGD with weight decay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.fedavg import Averaging
from wirelessfl.training.payloads import Received


@dataclass(frozen=True)
class TaskRule(Averaging):
    """Clients take plain SGD steps with weight decay (Askin et al., UAI 2024, Algorithm 1).

    The paper's bounds, and option D's rule, are for SGD without momentum. The update x_tau - x is
    - tau eta_c Delta in the paper's terms.

    Args:
        weight_decay: lambda; a step descends loss + lambda / 2 ||x||^2.
    """

    name = ""

    lr: Annotated[float, Field(gt=0, description="step size eta_c of the clients' SGD")] = 0.1
    weight_decay: Annotated[
        float, Field(ge=0, description="lambda of the clients' weight decay, lambda/2 ||x||^2")
    ] = 0.0

    @property
    def shrink(self) -> float:
        """1 - eta_c lambda."""
        return 1.0 - self.lr * self.weight_decay


def staleness(received: Received, like: Tensor) -> Tensor:
    """[clients, 1], merges between what each client was sent and now; 0 where none is known."""
    if received.staleness is None:
        return like.new_zeros(len(received.clients), 1)
    return like.new_tensor(received.staleness.tolist())[:, None]
