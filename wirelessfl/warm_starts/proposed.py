"""Dynamic initial model construction (Chang et al., Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from wirelessfl.warm_starts.average import finite, weighted
from wirelessfl.warm_starts.base import Initial, Opening, Past, WarmStart
from wirelessfl.warm_starts.distances import DISTANCES, Similarity, softmax_weights


@dataclass(frozen=True)
class Proposed(WarmStart):
    """A mean of past models, weighted by how alike their clients and the present ones are.

    The mean of the last models of the first P sessions is the pilot model. Clients of a later
    session s train it for V rounds, G_s = w_s^(V) - w_pilot, and the session begins with
    sum_z alpha_z w_z, alpha = softmax_z(-R ||G_s - G_z||) over the sessions z from P to s - 1,
    (5). The first one after the pilot has no such past and goes on from the latest model. (The
    paper writes G_s = w_s^(V-1) - w_pilot; V = 1 is one round here, not none.)

    Args:
        pilot_sessions: P.
        trial_rounds: V.
        similarity: distance of G_s and G_z: ``two_norm`` as in the published code, tensor by tensor
            with norm 1 and without biases; ``plain_two_norm`` of the whole vectors, as in the
            paper; ``inner_product``, less that of the tensors with norm 1.
        similarity_scale: R; 0 is the plain mean, a large one takes the nearest session's model.
        history: H, maximum number of sessions that are kept.
        history_keep: of more, the latest H stay, or the most diverse: one of the two sessions
            whose G are nearest to each other goes, the one that the other kept ones are nearer to.
    """

    pilot_sessions: Annotated[
        int, Field(ge=1, description="P, first sessions; they make the pilot model")
    ] = 1
    trial_rounds: Annotated[
        int, Field(ge=1, description="V, rounds from the pilot model before a session")
    ] = 1
    similarity: Annotated[
        Similarity, Field(description="how the changes of the pilot model are compared")
    ] = "two_norm"
    similarity_scale: Annotated[
        float, Field(ge=0, description="R of softmax(-R distance); 0 is the plain mean")
    ] = 10.0
    history: Annotated[
        int | None, Field(ge=1, description="H, maximum number of past sessions that are kept")
    ] = None
    history_keep: Annotated[
        Literal["latest", "diverse"],
        Field(description="which of more past sessions are kept: the latest, or the most diverse"),
    ] = "latest"

    def unused(self) -> Mapping[str, str]:
        """Without a limit every past session is kept."""
        return {} if self.history is not None else {"history_keep": "needs history: give it"}

    def trials(self, session: int) -> int:
        """V, from the first session after the pilot ones on."""
        return self.trial_rounds if session >= self.pilot_sessions else 0

    def trial_model(self, opening: Opening) -> Tensor:
        """The pilot model."""
        assert opening.past.pilot is not None
        return opening.past.pilot

    def initial(self, opening: Opening) -> Initial:
        """The weighted mean of past models."""
        if opening.gradient is None or not opening.past.gradients:
            return Initial(opening.latest)
        distance = DISTANCES[self.similarity]
        past = finite(opening.past)
        apart = [distance(opening.gradient, g, opening.spec) for g in past.gradients]
        return weighted(past, softmax_weights(apart, self.similarity_scale), opening)

    def remember(self, past: Past, session: int, last: Tensor, gradient: Tensor | None) -> Past:
        """Models of the pilot sessions until their mean is made; then 2 P floats a session."""
        if session < self.pilot_sessions:
            past = past.with_session(session, last)
            if session + 1 < self.pilot_sessions:
                return past
            return Past(pilot=torch.stack(past.models).mean(0))
        assert gradient is not None
        return self._bounded(past.with_session(session, last, gradient))

    def _bounded(self, past: Past) -> Past:
        """At most H sessions."""
        if self.history is None or len(past.sessions) <= self.history:
            return past
        places = list(range(len(past.sessions)))
        if self.history_keep == "latest":
            return past.only(places[-self.history :])
        return past.only([i for i in places if i != _nearest_to_others(past.gradients)])


def _nearest_to_others(gradients: tuple[Tensor, ...]) -> int:
    """The one of the nearest pair that the others are nearer to, by cosine distances.

    Lengths are left out: they say how well the pilot model fits, not which way the clients pull.
    """
    rows = torch.nn.functional.normalize(torch.stack(gradients).double(), dim=1)
    apart = (2 - 2 * rows @ rows.T).clamp(min=0).sqrt()
    apart.fill_diagonal_(torch.inf)
    one, two = divmod(int(apart.argmin()), len(gradients))
    others = [i for i in range(len(gradients)) if i not in (one, two)]
    if not others:
        return min(one, two)  # the older one
    near = {place: float(apart[place, others].min()) for place in (one, two)}
    return min(near, key=lambda place: (near[place], place))
