"""FedAST-NoBuffer: every update is merged as it comes (Askin et al., UAI 2024, Section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.task_rule import TaskRule


@dataclass(frozen=True)
class FedASTNoBuffer(TaskRule):
    """FedAST's rule with a step for single updates, the asynchronous baseline of its paper."""

    name = "fedast-nobuffer"

    server_lr: Annotated[
        float, Field(gt=0, description="step size eta_s of the server along each change")
    ] = 0.038
