"""Cross-entropy over classes, of a sample or of each pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from wirelessfl.losses.loss import Accuracy, Loss


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Cross-entropy of outputs [batch, classes] with labels [batch], int64.

    For labels [batch, H, W, ...] and outputs [batch, classes, H, W, ...] it is the mean over the
    pixels of a sample.

    >>> import torch
    >>> from wirelessfl.losses import CrossEntropy
    >>> loss = CrossEntropy(label_smoothing=0.1)
    >>> values = loss.values(torch.tensor([[0.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 0]))
    >>> [round(value, 3) for value in values.tolist()]
    [0.693, 0.45]

    Args:
        label_smoothing: weight s of the uniform distribution in the target, which is 1 - s + s / C
            for the label and s / C for the other C - 1 classes (Szegedy et al., CVPR 2016).
    """

    accuracy: ClassVar[Accuracy | None] = "classes"

    label_smoothing: Annotated[
        float, Field(ge=0, lt=1, description="weight of the uniform distribution in the labels")
    ] = 0.0

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Loss`."""
        found = torch.nn.functional.cross_entropy(
            outputs, labels, reduction="none", label_smoothing=self.label_smoothing
        )
        return found if found.dim() == 1 else found.flatten(1).mean(1)

    def reduced(
        self, outputs: torch.Tensor, labels: torch.Tensor, how: Literal["sum", "mean"]
    ) -> torch.Tensor:
        """See :class:`Loss`."""
        if labels.dim() > 1:
            return super().reduced(outputs, labels, how)
        return torch.nn.functional.cross_entropy(
            outputs, labels, reduction=how, label_smoothing=self.label_smoothing
        )

    def fits(self, labels: torch.Tensor) -> bool:
        """Whether labels are integers."""
        return labels.dtype == torch.int64

    def shapes(self, labels: torch.Tensor, classes: int) -> tuple[tuple[int, ...], ...]:
        """A score per class, of each sample or pixel."""
        return ((len(labels), classes, *labels.shape[1:]),)
