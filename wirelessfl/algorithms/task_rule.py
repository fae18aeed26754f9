"""What the algorithms for several tasks share: local SGD with weight decay, one server a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.training.payloads import Received


@dataclass(frozen=True)
class TaskRule(FedAvg):
    """FedAvg's client with weight decay (Askin et al., UAI 2024, Algorithm 1), a part of others.

    The update x_tau - x is - tau eta_c Delta in the paper's terms.

    Args:
        weight_decay: lambda; a step descends loss + lambda / 2 ||x||^2.
    """

    name = ""
    most_tasks: ClassVar[int | None] = None

    lr: Annotated[float, Field(gt=0, description="step size eta_c of the clients' SGD")] = 0.1
    momentum: Annotated[float, Field(description="0: local steps are plain SGD")] = 0.0
    weight_decay: Annotated[
        float, Field(ge=0, description="lambda of the clients' weight decay, lambda/2 ||x||^2")
    ] = 0.0

    def __post_init__(self) -> None:
        """Refuse momentum: the paper's bounds, and option D's rule, are for plain SGD.

        Raises:
            ValueError: there is some.
        """
        if self.momentum != 0:
            raise ValueError(
                f"momentum is {self.momentum}: clients of {self.name!r} take steps of plain SGD. "
                "Choose momentum 0."
            )

    @property
    def shrink(self) -> float:
        """1 - eta_c lambda."""
        return 1.0 - self.lr * self.weight_decay


@dataclass(frozen=True)
class Reallocation:
    """How requests are dealt out anew among tasks (Askin et al., Algorithm 3).

    Args:
        floor: requests that a task keeps at least, also when another one's are dealt out.
        period: updates between two reallocations, in M sum R_m; None: none.
        updates: V, the latest updates of a task that are looked at.
    """

    floor: int = 1
    period: float | None = None
    updates: int = 0


@dataclass(frozen=True)
class BufferedRule(TaskRule):
    """A server that merges whatever has come back, some at a time; a part of others.

    Args:
        requests: R_m, training requests of a task that are out at a time.
        buffer: b_m, updates that make a merge.
    """

    name = ""
    timing = "buffered"
    buffer_scales: ClassVar[bool] = True
    """Whether a task with more requests gets a larger buffer, R / b being kept."""

    uses_mean: ClassVar[bool] = True
    """Whether updates are merged by their mean, whose weights may be the samples."""

    @property
    def reallocation(self) -> Reallocation:
        """None, unless an algorithm says otherwise."""
        return Reallocation()

    def spread(self, updates: Tensor, local_steps: int) -> float | None:
        """How far updates [V, P] lie apart, for a reallocation; None where that is not known."""
        return None

    requests: Annotated[
        int, Field(ge=1, description="R_m, training requests of a task that are out at a time")
    ] = 96
    buffer: Annotated[int, Field(ge=1, description="b_m, updates that make a merge")] = 3


def staleness(received: Received, like: Tensor) -> Tensor:
    """[clients, 1], merges between what each client was sent and now; 0 where none is known."""
    if received.staleness is None:
        return like.new_zeros(len(received.clients), 1)
    return like.new_tensor(received.staleness.tolist())[:, None]
