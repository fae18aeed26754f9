"""Mean absolute error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from wirelessfl.metrics.metric import OfReals


@dataclass(frozen=True)
class MAE(OfReals):
    """Mean absolute error, in the unit of the labels; the mean over the labels of a sample."""

    smaller: ClassVar[bool] = True

    def of(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`OfReals`."""
        return (outputs - labels).abs().mean()
