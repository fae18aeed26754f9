"""Huber loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.losses.regression import Regression


@dataclass(frozen=True)
class Huber(Regression):
    """Huber loss, the mean over the labels of a sample (Huber, Ann. Math. Statist., 1964).

    It is e^2 / 2 for errors |e| <= d, and d (|e| - d / 2) for larger ones.

    Args:
        huber_delta: d, the error at which the loss becomes linear, in the unit of the labels.
    """

    huber_delta: Annotated[
        float,
        Field(gt=0, description="error above which the Huber loss is linear, in units of labels"),
    ] = 1.0

    def elements(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Regression`."""
        return torch.nn.functional.huber_loss(
            outputs, labels, reduction="none", delta=self.huber_delta
        )
