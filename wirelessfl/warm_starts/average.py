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
        if not opening.past.sessions:
            return Initial(opening.latest)
        return weighted(opening.past, [1.0 / len(opening.past.sessions)] * len(opening.past.models))

    def remember(self, past: Past, session: int, last: Tensor, gradient: Tensor | None) -> Past:
        """All models after the pilot sessions."""
        if session < self.pilot_sessions:
            return past
        return replace(past, gradients=()).with_session(session, last)


def weighted(past: Past, weights: list[float]) -> Initial:
    """The mean of the past sessions' models with these weights, whose sum is 1."""
    params = sum(weight * model for weight, model in zip(weights, past.models, strict=True))
    assert isinstance(params, Tensor)
    return Initial(params, dict(zip(past.sessions, weights, strict=True)))
