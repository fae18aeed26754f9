"""Average: the uniform mean of the models that past sessions have left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field
from torch import Tensor

from wirelessfl.warm_starts.base import Initial, Opening, Past, WarmStart


@dataclass(frozen=True)
class Average(WarmStart):
    """w_init = the mean of the last models of all sessions after the pilot ones.

    Sessions without such a past go on from the latest model.

    Args:
        pilot_sessions: P, first sessions that do not count.
    """

    pilot_sessions: Annotated[
        int, Field(ge=1, description="P, first sessions; they make the pilot model")
    ] = 1

    def initial(self, opening: Opening) -> Initial:
        """The mean of what is kept."""
        past = finite(opening.past)
        return weighted(past, [1.0 / len(past.models) for _ in past.models], opening)

    def remember(self, past: Past, session: int, last: Tensor, gradient: Tensor | None) -> Past:
        """All models after the pilot sessions."""
        if session < self.pilot_sessions:
            return past
        return replace(past, gradients=()).with_session(session, last)


def finite(past: Past) -> Past:
    """The sessions that have not diverged."""
    return past.only([i for i, model in enumerate(past.models) if bool(model.isfinite().all())])


def weighted(past: Past, weights: list[float], opening: Opening) -> Initial:
    """The mean of the past sessions' models with these weights; the latest where all are 0.

    Args:
        past: the sessions, their models finite.
        weights: of each; their sum is 1 or 0.
        opening: of the session.
    """
    if not any(weights):
        return Initial(opening.latest)
    params = sum(weight * model for weight, model in zip(weights, past.models, strict=True))
    assert isinstance(params, Tensor)
    return Initial(params, dict(zip(past.sessions, weights, strict=True)))
