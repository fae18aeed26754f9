"""Losses. Files in this folder are discovered automatically.

A loss of one's own is a function ``f(outputs, labels) -> Tensor``, named by its import path or
given to ``wirelessfl.run``; see ``wirelessfl.models.losses.own``.
"""

from __future__ import annotations

from wirelessfl.models.losses.built_in import CrossEntropy
from wirelessfl.models.losses.kind import LOSSES, check_labels
from wirelessfl.models.losses.loss import Accuracy, Loss, accuracies
from wirelessfl.models.losses.own import FunctionLoss, GivenLoss, OwnLoss, Probe, ready

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
