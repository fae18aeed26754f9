"""FedAST-NoBuffer: each update is merged on arrival (Askin et al., UAI 2024, Section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.sync_st import TaskRule


@dataclass(frozen=True)
class FedASTNoBuffer(TaskRule):
    """FedAST without a buffer: each update is merged on arrival (Askin et al., UAI 2024)."""

    name = "fedast-nobuffer"

    server_lr: Annotated[
        float, Field(gt=0, description="server step size eta_s along each change")
    ] = 0.038
