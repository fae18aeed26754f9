"""Distances between the clients of two sessions, from their changes of the pilot model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch

from wirelessfl.submodels import ParamSpec

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
    known = torch.tensor(distances, dtype=torch.float64)
    lost = ~known.isfinite()
    if bool(lost.all()):
        return [0.0] * len(distances)
    scores = (-scale * known).masked_fill(lost, -math.inf)
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
