"""Average: the uniform mean of the final models of past sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.warm_starts.warm_start import PILOT, Initial, Opening, Past, WarmStart


@dataclass(frozen=True)
class Average(WarmStart):
    """Start from the mean of the final models of all sessions after the pilot sessions.

    If there is no such session, start from the latest model.

    Args:
        pilot_sessions: P, number of initial sessions that are not averaged.
    """

    pilot_sessions: Annotated[
        int,
        Field(ge=1, description="P, number of initial sessions that train the pilot model"),
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
