"""Coefficient of determination."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from wirelessfl.metrics.metric import OfReals


@dataclass(frozen=True)
class R2(OfReals):
    """Coefficient of determination, the mean over the labels of a sample.

    1 - sum (y - f)^2 / sum (y - mean y)^2; None if a label is equal in all samples.
    """

    def of(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`OfReals`."""
        left = ((labels - outputs) ** 2).sum(0)
        return (1 - left / ((labels - labels.mean(0)) ** 2).sum(0)).mean()
