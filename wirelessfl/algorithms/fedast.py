"""FedAST: the rule of asynchronous simultaneous training (Askin et al., UAI 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.task_rule import TaskRule


@dataclass(frozen=True)
class FedAST(TaskRule):
    """Each task steps along the mean change: x <- x - eta_s eta_c tau mean(Delta) (Algorithm 2).

    Its name stands for this rule under schedule ``buffered``, whose option D is Algorithm 3.

    Args:
        server_lr: eta_s.
    """

    name = "fedast"

    server_lr: Annotated[
        float, Field(gt=0, description="step size eta_s of the server along the mean change")
    ] = 0.1
