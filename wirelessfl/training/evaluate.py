"""Test accuracy and loss of a flat parameter vector, and the choice of the tested submodel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wirelessfl.data.dataset import widened
from wirelessfl.errors import ConfigError
from wirelessfl.guard import calling, described
from wirelessfl.losses import accuracies
from wirelessfl.metrics import Measures
from wirelessfl.submodels import Submodels
from wirelessfl.training.objective import Objective
from wirelessfl.training.pooling import FastPooling

NO_MEASURES = Measures()


class EvaluationSamples(NamedTuple):
    """Samples that a model is evaluated on.

    Args:
        inputs: [samples, ...] on the device.
        labels: [samples, ...] on the device.
    """

    inputs: Tensor
    labels: Tensor


class Evaluated(NamedTuple):
    """A model's results on samples.

    Args:
        accuracy: in [0, 1]; None if outputs are neither right nor wrong, as in regression.
        loss: mean loss.
        metrics: further metrics, by field of rows.
    """

    accuracy: float | None
    loss: float
    metrics: Mapping[str, Any]


def evaluate(
    objective: Objective, params: Tensor, inputs: Tensor, labels: Tensor, batch: int | None = None
) -> tuple[float | None, float]:
    """Accuracy in [0, 1] and mean loss of ``params`` [P]; arguments as in ``measured``."""
    return measured(objective, params, EvaluationSamples(inputs, labels), batch=batch)[:2]


@torch.no_grad()
def measured(
    objective: Objective,
    params: Tensor,
    samples: EvaluationSamples,
    measures: Measures = NO_MEASURES,
    batch: int | None = None,
) -> Evaluated:
    """Accuracy, mean loss and metrics of ``params`` [P] over the samples.

    Outputs of all samples are kept only for metrics: 4 bytes per sample and output.

    Sums over batches are float64, so the result does not depend on the batch size, except for
    models that mix the samples of a batch (batch normalisation).

    Args:
        objective: model and loss.
        params: parameters [P].
        samples: the samples.
        measures: further metrics.
        batch: samples per batch; None for the objective's ``test_batch``.

    Raises:
        ConfigError, TrainingError: as for ``logits_of``.
    """
    if batch is None:
        batch = objective.test_batch
    tensors = objective.spec.views(params)
    objective.module.eval()
    inputs, labels = samples
    criterion, kept = objective.criterion, list[Tensor]()
    right, loss = 0.0, 0.0
    for first in range(0, len(labels), batch):
        # A copy, because a module may normalise its input in place.
        x = widened(inputs[first : first + batch]).clone()
        y = labels[first : first + batch]
        with FastPooling():
            logits = logits_of(objective, tensors, x, y)
        if criterion.accuracy is not None:
            right += float(accuracies(criterion.accuracy, logits, y).sum())
        loss += float(criterion.reduced(logits, y, "sum").double())
        if measures:
            kept.append(logits)
    accuracy = None if criterion.accuracy is None else right / len(labels)
    metrics = measures.of(torch.cat(kept), labels) if measures else {}
    return Evaluated(accuracy, loss / len(labels), metrics)


def logits_of(objective: Objective, params: Mapping[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Outputs of ``x`` [batch, ...] with labels ``y`` [batch, ...] in evaluation.

    Raises:
        ConfigError: the model does not return one row per sample.
        TrainingError: the model has raised an exception.
    """
    name = type(objective.module).__name__
    with calling(f"model {name}, evaluation of {len(x)} samples"):
        logits = objective.call(params, x)
    if not _one_each(objective, logits, y):
        raise ConfigError(
            f"model {name} returns {described(logits)} for {len(x)} samples in evaluation: return "
            "logits [batch, classes] for any number of samples."
        )
    return logits


def _one_each(objective: Objective, outputs: object, y: Tensor) -> bool:
    """Whether outputs have one row per sample, and the shape that the loss needs."""
    if not isinstance(outputs, Tensor) or not outputs.dim() or len(outputs) != len(y):
        return False
    classes = outputs.shape[1] if outputs.dim() > 1 else 1
    shapes = objective.criterion.shapes(y, classes)
    return shapes is None or tuple(outputs.shape) in shapes


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
