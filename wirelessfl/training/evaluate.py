"""Accuracy and loss of a flat parameter vector on a test set, and which part of it is tested."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from wirelessfl.data.dataset import widened
from wirelessfl.submodels import Submodels
from wirelessfl.training.objective import Objective


class Samples(NamedTuple):
    """Samples that a model is evaluated on.

    Args:
        inputs: [samples, ...] on the device.
        labels: [samples] on the device.
    """

    inputs: Tensor
    labels: Tensor


@torch.no_grad()
def evaluate(
    objective: Objective, params: Tensor, inputs: Tensor, labels: Tensor, batch: int | None = None
) -> tuple[float, float]:
    """Accuracy in [0, 1] and mean cross-entropy of ``params`` [P] over the samples.

    Sums over batches are kept in float64, so that the batch size does not matter, but for a model
    that mixes the samples of a batch (batch normalisation). It is the objective's
    ``test_batch`` unless it is given.
    """
    if batch is None:
        batch = objective.test_batch
    tensors = objective.spec.views(params)
    objective.module.eval()
    right, loss = 0, 0.0
    for first in range(0, len(labels), batch):
        x, y = widened(inputs[first : first + batch]), labels[first : first + batch]
        logits = objective.call(tensors, x)
        right += int((logits.argmax(-1) == y).sum())
        loss += float(F.cross_entropy(logits, y, reduction="sum").double())
    return right / len(labels), loss / len(labels)


def deployed(
    objective: Objective, params: Tensor, tested: Submodels | None
) -> tuple[Objective, Tensor]:
    """The model that is tested, and its parameters: the whole of ``params`` [P], or a part of it.

    Args:
        objective: of the whole model.
        params: of the whole model.
        tested: the one submodel that is tested; None: the whole model.
    """
    if tested is None:
        return objective, params
    return replace(objective, spec=tested.spec), tested.gather(params)[0]
