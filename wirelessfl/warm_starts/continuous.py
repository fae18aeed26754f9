"""Continuous: go on from the latest model, and learn from it as from a teacher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.training.cohort import Penalty
from wirelessfl.training.penalties import LogitDistillation, RelationDistillation
from wirelessfl.warm_starts.base import Initial, Opening, WarmStart


@dataclass(frozen=True)
class Continuous(WarmStart):
    """The latest model, which stays the clients' teacher for the session.

    The teacher's copy crosses the downlink once a session.

    Args:
        distillation: ``csrd``, class-semantic relation distillation (Dong et al., CVPR 2022), as
            the paper says; ``logits``, plain distillation, as the published code has it.
        kl_weight: weight of the divergence in the clients' loss.
    """

    distillation: Annotated[
        Literal["csrd", "logits"],
        Field(
            description="what clients learn from the session before's model: relations or logits"
        ),
    ] = "csrd"
    kl_weight: Annotated[float, Field(ge=0, description="weight of the distillation loss")] = 1.0

    def initial(self, opening: Opening) -> Initial:
        """w_init = the latest model."""
        return Initial(opening.latest)

    def penalties(self, session: int, labels_before: tuple[int, ...]) -> tuple[Penalty, ...]:
        """The divergence from the teacher; the first session has none."""
        if session == 0:
            return ()
        if self.distillation == "csrd":
            return (RelationDistillation(self.kl_weight, labels_before),)
        return (LogitDistillation(self.kl_weight),)
