"""The base class of losses of regression."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch

from wirelessfl.losses.binary_cross_entropy import of_labels
from wirelessfl.losses.loss import Loss


@dataclass(frozen=True)
class Regression(Loss):
    """Base class of losses of real labels [batch] or [batch, ...], float32.

    Outputs have the shape of the labels, or [batch, 1] for labels [batch]. The loss of a sample is
    the mean over its labels.
    """

    name = ""

    @abstractmethod
    def elements(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of each label, of the shape of ``labels``."""

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Loss`."""
        found = self.elements(outputs.reshape(labels.shape), labels)
        return found if found.dim() == 1 else found.flatten(1).mean(1)

    def fits(self, labels: torch.Tensor) -> bool:
        """Whether labels are real numbers."""
        return labels.dtype == torch.float32

    def shapes(self, labels: torch.Tensor, classes: int) -> tuple[tuple[int, ...], ...]:
        """An output per label."""
        return of_labels(labels)
