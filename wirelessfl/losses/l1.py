"""Absolute error."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from wirelessfl.losses.regression import Regression


@dataclass(frozen=True)
class L1(Regression):
    """Mean absolute error over the labels of a sample."""

    def elements(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Regression`."""
        return torch.nn.functional.l1_loss(outputs, labels, reduction="none")
