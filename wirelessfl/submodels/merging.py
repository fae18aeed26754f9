"""The merge of overlapping submodels: at each coordinate a mean over those that cover it."""

from __future__ import annotations

import torch
from torch import Tensor


def covered_mean(total: Tensor, weight: Tensor, uncovered: Tensor | float) -> Tensor:
    """Weighted mean over those who cover a coordinate: (1/Gamma^i) sum over them, at equal weights.

    Disjoint submodels are put in their places, (7) of HIST; what all share is averaged; those that
    overlap are RA-Fed's mean.

    Args:
        total: [..., P], sum of weight times value over those who cover each coordinate.
        weight: [..., P], sum of their weights, >= 0; 0 where nobody does.
        uncovered: [..., P] or one number, what stands there then.

    Returns:
        [..., P].
    """
    mean = total / torch.where(weight > 0, weight, 1.0)
    return torch.where(weight > 0, mean, uncovered)
