"""FedAST: asynchronous simultaneous training of several models (Askin et al., UAI 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.sync_st import TaskRule


@dataclass(frozen=True)
class FedAST(TaskRule):
    """Buffered asynchronous training of several tasks (Askin et al., UAI 2024, Algorithm 2).

    Each task's server steps along the mean change: x <- x - eta_s eta_c tau mean(Delta). The name
    ``fedast`` selects this rule with schedule ``buffered``, whose option D is Algorithm 3.
    """

    name = "fedast"

    server_lr: Annotated[
        float, Field(gt=0, description="server step size eta_s along the mean change")
    ] = 0.1


@dataclass(frozen=True)
class FedASTNoBuffer(TaskRule):
    """FedAST without a buffer: each update is merged on arrival (Askin et al., UAI 2024)."""

    name = "fedast-nobuffer"

    server_lr: Annotated[
        float, Field(gt=0, description="server step size eta_s along each change")
    ] = 0.038
