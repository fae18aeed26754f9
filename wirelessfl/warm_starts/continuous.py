"""Continuous: start from the latest model, and distil from it during the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.training.cohort import Penalty
from wirelessfl.training.penalties import LogitDistillation, RelationDistillation
from wirelessfl.warm_starts.warm_start import Initial, Opening, WarmStart


@dataclass(frozen=True)
class Continuous(WarmStart):
    """Start from the latest model, and distil from it during the session.

    The teacher is sent over the downlink once per session, as a whole: clients that train
    submodels distil from the same submodel of it, which can differ in each round.

    Args:
        distillation: ``csrd``, class-semantic relation distillation (Dong et al., CVPR 2022), as in
            the paper; ``logits``, plain distillation, as in the published code.
        kl_weight: weight of the Kullback-Leibler divergence in the clients' loss.
    """

    distillation: Annotated[
        Literal["csrd", "logits"],
        Field(
            description="distillation from the previous session's model: class relations (csrd), "
            "or logits"
        ),
    ] = "csrd"
    kl_weight: Annotated[float, Field(ge=0, description="weight of the distillation loss")] = 1.0

    def initial(self, opening: Opening) -> Initial:
        """The latest model."""
        return Initial(opening.latest)

    def penalties(self, session: int, labels_before: tuple[int, ...]) -> tuple[Penalty, ...]:
        """The divergence from the teacher; no penalty in the first session."""
        if session == 0:
            return ()
        if self.distillation == "csrd":
            return (RelationDistillation(self.kl_weight, labels_before),)
        return (LogitDistillation(self.kl_weight),)
