"""Losses. Files in this folder are discovered automatically.

A loss of one's own is a function ``f(outputs, labels) -> Tensor``, named by its import path or
given to ``wirelessfl.run``; see ``wirelessfl.models.losses.loss``.
"""

from __future__ import annotations

from wirelessfl.models.losses.built_in import LOSSES, CrossEntropy, check_labels
from wirelessfl.models.losses.loss import (
    Accuracy,
    FunctionLoss,
    GivenLoss,
    Loss,
    OwnLoss,
    Probe,
    accuracies,
    ready,
)

__all__ = [
    "LOSSES",
    "Accuracy",
    "CrossEntropy",
    "FunctionLoss",
    "GivenLoss",
    "Loss",
    "OwnLoss",
    "Probe",
    "accuracies",
    "check_labels",
    "ready",
]
