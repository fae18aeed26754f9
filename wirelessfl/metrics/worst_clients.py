"""Accuracy for the clients that the model serves worst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from channels.arrays import FloatArray
from wirelessfl.losses import Accuracy
from wirelessfl.metrics.class_accuracy import of_classes
from wirelessfl.metrics.metric import Metric, Predicted

FRACTION = 0.1


@dataclass(frozen=True)
class WorstClients(Metric):
    """Mean accuracy of the worst 10 % of clients.

    The accuracy of a client is an estimate: the mean of the test accuracies of the classes,
    weighted by the shares of these labels among the client's training samples. Classes without
    test samples are left out of the mean. In sessions, the clients are those present.
    """

    by_clients: ClassVar[bool] = True

    def why_not(self, labels: torch.Tensor, accuracy: Accuracy | None) -> str | None:
        """Clients are described by one label per sample."""
        single = labels.dtype == torch.int64 and labels.dim() == 1
        return None if single else "needs one class per sample, int64 labels [n]"

    def value(self, tested: Predicted) -> float:
        """See :class:`Metric`."""
        assert tested.shares is not None
        return worst(of_classes(tested).cpu().numpy(), tested.shares)


def worst(accuracy: FloatArray, shares: FloatArray) -> float:
    """Mean accuracy of the worst tenth of the clients, rounded up.

    Args:
        accuracy: [classes], nan if unknown.
        shares: [clients, classes], fraction of each label among the samples of each client.
    """
    known = ~np.isnan(accuracy)
    weights = shares[:, known]
    total = weights.sum(1)
    tested = total > 0
    if not tested.any():
        return float("nan")
    each = np.sort((weights[tested] @ accuracy[known]) / total[tested])
    return float(each[: int(np.ceil(FRACTION * len(each)))].mean())
