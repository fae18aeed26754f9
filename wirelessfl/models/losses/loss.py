"""The interface of losses: a value for each sample, from a model's outputs and the labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from wirelessfl.base.guard import UnfitError, described, returns
from wirelessfl.base.registry import Choice

Accuracy = Literal["classes", "signs"]
"""What is right in an output: the largest entry over the classes, or the sign of each entry."""


def _values(value: Any, loss: Loss, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Check for one value per sample."""
    if not isinstance(value, torch.Tensor) or value.shape != labels.shape[:1]:
        raise UnfitError(described(value), f"the loss of each of the {len(labels)} samples")
    return value


@dataclass(frozen=True)
class Loss(Choice, ABC):
    """Base class of losses.

    A sample's loss must depend on that sample only, because batches are padded.

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from wirelessfl.losses import Loss
    >>> @dataclass(frozen=True)
    ... class PowerLoss(Loss):
    ...     # Mean of |output - label|^power
    ...     power: float = 4.0
    ...     def values(self, outputs, labels):
    ...         return (outputs - labels).abs().pow(self.power).flatten(1).mean(1)
    >>> PowerLoss().values(torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [0.0]])).tolist()
    [1.0, 16.0]
    """

    accuracy: ClassVar[Accuracy | None] = None
    """What counts as right; None if outputs are neither right nor wrong, as in regression."""

    @returns(_values)
    @abstractmethod
    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of each sample, [batch].

        Args:
            outputs: [batch, ...], outputs of the model.
            labels: [batch, ...].
        """

    def reduced(
        self, outputs: torch.Tensor, labels: torch.Tensor, how: Literal["sum", "mean"]
    ) -> torch.Tensor:
        """Sum or mean of the samples' losses, in evaluation."""
        values = self.values(outputs, labels).double()
        return values.sum() if how == "sum" else values.mean()

    def fits(self, labels: torch.Tensor) -> bool:
        """Whether the loss takes labels of this type, shape and range."""
        return True

    def shapes(self, labels: torch.Tensor, classes: int) -> tuple[tuple[int, ...], ...] | None:
        """The shapes of outputs that the loss takes for ``labels`` [batch, ...]; None for any.

        Args:
            labels: labels of a batch.
            classes: number of outputs of the model.
        """
        return None


def is_binary(labels: torch.Tensor) -> bool:
    """Whether all labels are 0 or 1."""
    return bool(((labels == 0) | (labels == 1)).all())


def accuracies(kind: Accuracy, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Fraction of right predictions of each sample, [batch]: booleans if it has a single one.

    >>> import torch
    >>> from wirelessfl.losses import accuracies
    >>> outputs = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    >>> accuracies("classes", outputs, torch.tensor([0, 0])).tolist()
    [True, False]

    Args:
        kind: what counts as right.
        outputs: [batch, classes, ...] for "classes", or as many as labels for "signs".
        labels: [batch, ...].
    """
    if kind == "classes":
        right = outputs.argmax(1) == labels
    else:
        right = (outputs.reshape(labels.shape) > 0) == (labels > 0.5)
    return right if right.dim() == 1 else right.flatten(1).to(torch.float64).mean(1)
