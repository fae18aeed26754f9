"""Warm starts from models of past sessions, or from none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from pydantic import Field

from wirelessfl.algorithms.warm_starts.warm_start import PILOT, Initial, Opening, Past, WarmStart
from wirelessfl.training.cohort import LogitDistillation, Penalty, RelationDistillation


@dataclass(frozen=True)
class Fresh(WarmStart):
    """Start every session from a newly drawn random model."""

    name = "fresh"

    draws = True

    def initial(self, opening: Opening) -> Initial:
        """A new random model; in the first session the run's initial model."""
        return Initial(opening.draw(opening.session) if opening.session else opening.latest)


@dataclass(frozen=True)
class Previous(WarmStart):
    """Start from the final model of the previous session."""

    name = "previous"

    def initial(self, opening: Opening) -> Initial:
        """The final model of the previous session."""
        return Initial(opening.latest)


@dataclass(frozen=True)
class Average(WarmStart):
    """Start from the mean of the final models of all sessions after the pilot sessions.

    If there is no such session, start from the latest model.
    """

    name = "average"

    pilot_sessions: Annotated[
        int,
        Field(
            ge=1,
            description=(
                "P, number of initial sessions that train the pilot model and are not averaged"
            ),
        ),
        PILOT,
    ] = 1

    def initial(self, opening: Opening) -> Initial:
        """The mean of the stored models."""
        past = finite(opening.past)
        return weighted(past, [1.0 / len(past.models) for _ in past.models], opening)

    def remember(
        self, past: Past, session: int, last: torch.Tensor, gradient: torch.Tensor | None
    ) -> Past:
        """Store the final model of each session after the pilot sessions."""
        if session < self.pilot_sessions:
            return past
        return replace(past, gradients=()).with_session(session, last)


def finite(past: Past) -> Past:
    """Return the past without sessions whose training diverged."""
    return past.only([i for i, model in enumerate(past.models) if bool(model.isfinite().all())])


def weighted(past: Past, weights: list[float], opening: Opening) -> Initial:
    """Weighted mean of the past sessions' models; the latest model if all weights are 0.

    Args:
        past: past sessions with finite models.
        weights: weight of each past session; they sum to 1 or 0.
        opening: facts of the session that begins.
    """
    if not any(weights):
        return Initial(opening.latest)
    params = sum(weight * model for weight, model in zip(weights, past.models, strict=True))
    assert isinstance(params, torch.Tensor)
    return Initial(params, dict(zip(past.sessions, weights, strict=True)))


@dataclass(frozen=True)
class Continuous(WarmStart):
    """Start from the latest model, and distil from it during the session.

    The teacher is sent over the downlink once per session, as a whole: clients that train
    submodels distil from the same submodel of it, which can differ in each round.
    """

    name = "continuous"

    distillation: Annotated[
        Literal["csrd", "logits"],
        Field(
            description=(
                "distillation from the previous session's model: class relations "
                "(csrd, as in the paper; Dong et al., CVPR 2022), or logits (as in "
                "the published code)"
            )
        ),
    ] = "csrd"
    kl_weight: Annotated[
        float,
        Field(ge=0, description="weight of the distillation loss, a Kullback-Leibler divergence"),
    ] = 1.0

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
