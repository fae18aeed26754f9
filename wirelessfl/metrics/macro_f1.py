"""Macro-averaged F1 score."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.metrics.metric import OfClasses, Predicted


@dataclass(frozen=True)
class MacroF1(OfClasses):
    """Mean over the classes of F1 = 2 TP / (2 TP + FP + FN).

    Classes that occur neither among labels nor among predictions are left out. With several labels
    per sample all of them count, and F1 is 0 for a label that never occurs and is never predicted.
    """

    def value(self, tested: Predicted) -> float:
        """See :class:`Metric`."""
        truth, found = tested.one_hot
        hits, both = (truth & found).sum(0).double(), (truth.sum(0) + found.sum(0)).double()
        score = 2 * hits / both.clamp(min=1)
        return float((score if tested.accuracy == "signs" else score[both > 0]).mean())
