"""Dynamic initial model construction (Chang et al., Algorithm 1), and its ablation of Table 14.

Models of past sessions are weighted by distances between the clients of two sessions, from their
changes of the pilot model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from pydantic import Field

from wirelessfl.algorithms.warm_starts.past import finite, weighted
from wirelessfl.algorithms.warm_starts.warm_start import PILOT, Initial, Opening, Past, WarmStart
from wirelessfl.base.needs import beside
from wirelessfl.models.submodels import ParamSpec

Similarity = Literal["two_norm", "plain_two_norm", "inner_product"]


def two_norm(one: torch.Tensor, two: torch.Tensor, spec: ParamSpec) -> float:
    """Mean over weight tensors, without biases, of ||g / ||g|| - h / ||h|| ||, in [0, 2].

    This is our reading of the published code; the paper says two-norm of the normalized gradients.

    Args:
        one: g, [P].
        two: h, [P].
        spec: slices of the tensors in the vectors.
    """
    pairs = zip(_directions(one, spec), _directions(two, spec), strict=True)
    return _mean([float((g - h).norm()) for g, h in pairs])


def plain_two_norm(one: torch.Tensor, two: torch.Tensor, spec: ParamSpec) -> float:
    """||g - h|| of the whole vectors, as in (5) of the paper."""
    return float((one.double() - two.double()).norm())


def inner_product(one: torch.Tensor, two: torch.Tensor, spec: ParamSpec) -> float:
    """Negative mean over weight tensors of the inner product of g / ||g|| and h / ||h||."""
    pairs = zip(_directions(one, spec), _directions(two, spec), strict=True)
    return -_mean([float((g * h).sum()) for g, h in pairs])


DISTANCES: dict[Similarity, Callable[[torch.Tensor, torch.Tensor, ParamSpec], float]] = {
    "two_norm": two_norm,
    "plain_two_norm": plain_two_norm,
    "inner_product": inner_product,
}


def softmax_weights(distances: list[float], scale: float) -> list[float]:
    """Weights alpha_z = exp(-R d_z) / sum_y exp(-R d_y), (5).

    Args:
        distances: d_z of each past session; sessions with a non-finite distance get weight 0.
        scale: R.
    """
    values = torch.tensor(distances, dtype=torch.float64)
    lost = ~values.isfinite()
    if bool(lost.all()):
        return [0.0] * len(distances)
    scores = (-scale * values).masked_fill(lost, -math.inf)
    return [float(weight) for weight in scores.softmax(0)]


def _directions(flat: torch.Tensor, spec: ParamSpec) -> list[torch.Tensor]:
    """Weight tensors with norm 1, in float64; zero tensors stay zero."""
    views = spec.views(flat.double())
    weights = [v for name, v in views.items() if not name.rpartition(".")[2].startswith("bias")]
    chosen = weights or list(views.values())
    norms = [value.norm() for value in chosen]
    return [value / norm if norm > 0 else value for value, norm in zip(chosen, norms, strict=True)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


@dataclass(frozen=True)
class Proposed(WarmStart):
    """Start from a mean of past models, weighted by the clients' similarity (Chang et al.).

    The pilot model is the mean of the final models of the first P sessions. Clients of a later
    session s train it for V trial rounds, which gives G_s = w_s^(V) - w_pilot. The session starts
    from sum_z alpha_z w_z with alpha = softmax_z(-R ||G_s - G_z||) over the sessions z from P to
    s - 1, (5). The first session after the pilot sessions has no such past and starts from the
    latest model. (The paper writes G_s = w_s^(V-1) - w_pilot; here V = 1 means one round.)
    """

    name = "proposed"

    pilot_sessions: Annotated[
        int,
        Field(ge=1, description="P, number of initial sessions that train the pilot model"),
        PILOT,
    ] = 1
    trial_rounds: Annotated[
        int, Field(ge=1, description="V, trial rounds from the pilot model before a session")
    ] = 1
    similarity: Annotated[
        Similarity,
        Field(
            description=(
                "distance between sessions' changes of the pilot model: per "
                "normalised tensor (two_norm, as published), of the vectors "
                "(plain_two_norm), or minus the inner product"
            )
        ),
    ] = "two_norm"
    similarity_scale: Annotated[
        float,
        Field(
            ge=0,
            description=(
                "R of softmax(-R distance); 0 for the plain mean, large values "
                "select the most similar session"
            ),
        ),
    ] = 10.0
    history: Annotated[
        int | None, Field(ge=1, description="H, maximum number of stored past sessions")
    ] = None
    history_keep: Annotated[
        Literal["latest", "diverse"],
        Field(
            description=("past sessions to store, up to --history: the latest, or the most diverse")
        ),
        beside("history"),
    ] = "latest"

    def trials(self, session: int) -> int:
        """V for sessions after the pilot sessions, else 0."""
        return self.trial_rounds if session >= self.pilot_sessions else 0

    def trial_model(self, opening: Opening) -> torch.Tensor:
        """The pilot model, from which trial rounds start."""
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

    def remember(
        self, past: Past, session: int, last: torch.Tensor, gradient: torch.Tensor | None
    ) -> Past:
        """Store models until the pilot model exists, then a model and a gradient per session."""
        if session < self.pilot_sessions:
            past = past.with_session(session, last)
            if session + 1 < self.pilot_sessions:
                return past
            return Past(pilot=torch.stack(past.models).mean(0))
        assert gradient is not None
        return self._bounded(past.with_session(session, last, gradient))

    def _bounded(self, past: Past) -> Past:
        """Limit the past to H sessions."""
        if self.history is None or len(past.sessions) <= self.history:
            return past
        indices = list(range(len(past.sessions)))
        if self.history_keep == "latest":
            return past.only(indices[-self.history :])
        return past.only([i for i in indices if i != _nearest_to_others(past.gradients)])


def _nearest_to_others(gradients: tuple[torch.Tensor, ...]) -> int:
    """Of the closest pair, return the index of the vector that is closer to the others.

    Distances are between vectors normalised to length 1. Lengths are ignored: they show how well
    the pilot model fits, not in which direction the clients change it.
    """
    rows = torch.nn.functional.normalize(torch.stack(gradients).double(), dim=1)
    apart = (2 - 2 * rows @ rows.T).clamp(min=0).sqrt()
    apart.fill_diagonal_(torch.inf)
    one, two = divmod(int(apart.argmin()), len(gradients))
    others = [i for i in range(len(gradients)) if i not in (one, two)]
    if not others:
        return min(one, two)  # the older one
    near = {index: float(apart[index, others].min()) for index in (one, two)}
    return min(near, key=lambda index: (near[index], index))


@dataclass(frozen=True)
class RandomPilot(Proposed):
    """Like warm start "proposed", but with a random pilot model (Chang et al., Table 14).

    The first P sessions train as with "proposed", so that runs are comparable.
    """

    name = "random-pilot"

    draws = True

    def trial_model(self, opening: Opening) -> torch.Tensor:
        """The random pilot model (number 0), the same in all trial rounds."""
        return opening.draw(0)

    def remember(
        self, past: Past, session: int, last: torch.Tensor, gradient: torch.Tensor | None
    ) -> Past:
        """Store the past as ``Proposed`` does, without the pilot model, which can be redrawn."""
        return replace(super().remember(past, session, last, gradient), pilot=None)
