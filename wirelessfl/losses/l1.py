"""Absolute error."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from wirelessfl.losses.regression import Regression


@dataclass(frozen=True)
class L1(Regression):
    """Mean absolute error over the labels of a sample."""

    def elements(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """See :class:`Regression`."""
        return F.l1_loss(outputs, labels, reduction="none")
