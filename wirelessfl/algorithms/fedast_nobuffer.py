"""FedAST-NoBuffer: every update is merged as it comes (Askin et al., UAI 2024, Section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.task_rule import UnbufferedRule


@dataclass(frozen=True)
class FedASTNoBuffer(UnbufferedRule):
    """FedAST with b_m = 1, the asynchronous baseline of its paper."""

    name = "fedast-nobuffer"

    server_lr: Annotated[
        float, Field(gt=0, description="step size eta_s of the server along each change")
    ] = 0.038
