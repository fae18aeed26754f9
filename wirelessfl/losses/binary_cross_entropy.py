"""Binary cross-entropy of several labels per sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from wirelessfl.losses.loss import Accuracy, Loss, is_binary


@dataclass(frozen=True)
class BinaryCrossEntropy(Loss):
    """Binary cross-entropy of logits [batch, L] with labels [batch, L] in {0, 1}.

    The loss of a sample is the mean over its labels. A label is right if the sign of its logit is.
    """

    accuracy: ClassVar[Accuracy | None] = "signs"

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Loss`."""
        found = torch.nn.functional.binary_cross_entropy_with_logits(
            outputs.reshape(labels.shape), labels.to(outputs.dtype), reduction="none"
        )
        return found if found.dim() == 1 else found.flatten(1).mean(1)

    def fits(self, labels: torch.Tensor) -> bool:
        """Whether all labels are 0 or 1, and there may be several per sample."""
        several = labels.dim() > 1 or labels.dtype == torch.float32
        return several and is_binary(labels)

    def shapes(self, labels: torch.Tensor, classes: int) -> tuple[tuple[int, ...], ...]:
        """An output per label."""
        return of_labels(labels)


def of_labels(labels: torch.Tensor) -> tuple[tuple[int, ...], ...]:
    """The shape of the labels; [batch, 1] too, if there is one per sample."""
    shape = tuple(labels.shape)
    return (shape,) if len(shape) > 1 else ((*shape, 1), shape)
