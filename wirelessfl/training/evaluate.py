"""Test accuracy and loss of a flat parameter vector, and the choice of the tested submodel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from wirelessfl.data.dataset import widened
from wirelessfl.errors import ConfigError
from wirelessfl.guard import calling, described
from wirelessfl.submodels import Submodels
from wirelessfl.training.objective import Objective
from wirelessfl.training.pooling import FastPooling


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

    Sums over batches are float64, so the result does not depend on the batch size, except for
    models that mix the samples of a batch (batch normalisation).

    Args:
        objective: model and loss.
        params: parameters [P].
        inputs: [samples, ...].
        labels: [samples].
        batch: samples per batch; None for the objective's ``test_batch``.

    Raises:
        ConfigError, TrainingError: as for ``logits_of``.
    """
    if batch is None:
        batch = objective.test_batch
    tensors = objective.spec.views(params)
    objective.module.eval()
    right, loss = 0, 0.0
    for first in range(0, len(labels), batch):
        # A copy, because a module may normalise its input in place.
        x = widened(inputs[first : first + batch]).clone()
        y = labels[first : first + batch]
        with FastPooling():
            logits = logits_of(objective, tensors, x)
        right += int((logits.argmax(-1) == y).sum())
        loss += float(F.cross_entropy(logits, y, reduction="sum").double())
    return right / len(labels), loss / len(labels)


def logits_of(objective: Objective, params: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Logits [batch, classes] of ``x`` [batch, ...] in evaluation.

    Raises:
        ConfigError: the model does not return one row per sample.
        TrainingError: the model has raised an exception.
    """
    name = type(objective.module).__name__
    with calling(f"model {name}, evaluation of {len(x)} samples"):
        logits = objective.call(params, x)
    if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != len(x):
        raise ConfigError(
            f"model {name} returns {described(logits)} for {len(x)} samples in evaluation: return "
            "logits [batch, classes] for any number of samples."
        )
    return logits


def deployed(
    objective: Objective, params: Tensor, tested: Submodels | None
) -> tuple[Objective, Tensor]:
    """The tested model and its parameters: the full model or a submodel.

    Args:
        objective: objective of the full model.
        params: parameters [P] of the full model.
        tested: the tested submodel; None for the full model.
    """
    if tested is None:
        return objective, params
    return replace(objective, spec=tested.spec), tested.gather(params)[0]
