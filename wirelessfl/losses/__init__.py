"""Losses. Files in this folder are discovered automatically.

A loss of one's own is a function ``f(outputs, labels) -> Tensor``, named by its import path or
given to ``wirelessfl.run``; see ``wirelessfl.losses.own``.
"""

from __future__ import annotations

from wirelessfl.losses.built_in import CrossEntropy
from wirelessfl.losses.kind import LOSSES, check_labels
from wirelessfl.losses.loss import Accuracy, Loss, accuracies
from wirelessfl.losses.own import FunctionLoss, GivenLoss, OwnLoss, Probe, ready

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
