"""Merging of submodels: each coordinate is averaged over the submodels that cover it."""

from __future__ import annotations

import torch


def covered_mean(
    total: torch.Tensor, weight: torch.Tensor, uncovered: torch.Tensor | float
) -> torch.Tensor:
    """Weighted mean over the submodels that cover a coordinate.

    With equal weights this is RA-Fed's mean, (1/Gamma^i) times their sum. Disjoint submodels are
    inserted at their positions, (7) of HIST; coordinates that all submodels share are averaged.

    Args:
        total: [..., P], sum of weight times value over the covering submodels.
        weight: [..., P], sum of their weights, >= 0; 0 at uncovered coordinates.
        uncovered: values of uncovered coordinates, [..., P] or one number.

    Returns:
        The mean [..., P].
    """
    mean = total / torch.where(weight > 0, weight, 1.0)
    return torch.where(weight > 0, mean, uncovered)
