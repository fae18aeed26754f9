"""Accuracy of each class."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from wirelessfl.metrics.metric import OfClasses, Predicted


@dataclass(frozen=True)
class ClassAccuracy(OfClasses):
    """Accuracy of each class, a list: the fraction of its samples, or pixels, that are right.

    It is None for a class without samples. With several labels per sample it is the fraction of
    the samples in which each label is right.
    """

    def value(self, tested: Predicted) -> list[float]:
        """See :class:`Metric`."""
        found: list[float] = of_classes(tested).tolist()
        return found


def of_classes(tested: Predicted) -> torch.Tensor:
    """Accuracy of each class, [classes], float64; nan for a class without samples."""
    truth, found = tested.one_hot
    if tested.accuracy == "signs":
        return (truth == found).double().mean(0)
    return (truth & found).sum(0).double() / truth.sum(0)
