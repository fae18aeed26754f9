"""Accuracy, loss and metrics of a model on test samples, and its losses on clients' samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from channels.arrays import FloatArray, IntArray
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.guard import calling, described
from wirelessfl.data.dataset import widened
from wirelessfl.models.losses import accuracies
from wirelessfl.models.metrics import Measures
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.executor import TrainingData
from wirelessfl.training.image_layers import FastPooling
from wirelessfl.training.objective import Objective

NO_MEASURES = Measures()
OfClients = Callable[[Tensor, int], dict[str, float]]
"""Numbers that clients report, by field of rows, about the parameters [P] of a version."""


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
        params: parameters [P].
        measures: further metrics.
        batch: samples per batch; None for the objective's ``test_batch``.
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
    """Outputs of ``x`` [batch, ...] with labels ``y`` [batch, ...] in evaluation."""
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


class Tested(Protocol):
    """Selects the samples and the metrics of an evaluation at the current time."""

    def samples(self, kind: str, samples: EvaluationSamples) -> EvaluationSamples:
        """The samples to evaluate, of all those of a ``kind``: "test" or "validation"."""

    def measures(self, measures: Measures) -> Measures:
        """The further metrics."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Test data of a model, and held-out training data.

    Args:
        objective: the full model and its loss.
        test: test samples.
        validation: held-out training samples; None without validation.
        measures: further metrics.
        submodel: the submodel to evaluate; None for the full model.
        tested: selects what is evaluated; None for all.
        of_clients: what clients report besides the test; None if they do not.
    """

    objective: Objective
    test: EvaluationSamples
    validation: EvaluationSamples | None = None
    measures: Measures = NO_MEASURES
    submodel: Submodels | None = None
    tested: Tested | None = None
    of_clients: OfClients | None = None

    def deployed(self, params: Tensor) -> tuple[Objective, Tensor]:
        """The model to evaluate and its parameters, given those of the full model, [P]."""
        return deployed(self.objective, params, self.submodel)

    def of(self, params: Tensor, version: int = 0) -> tuple[Evaluated, Evaluated | None]:
        """Accuracy, loss and metrics of the full model's parameters [P].

        Args:
            params: the parameters.
            version: number of merges that have led to them.

        Returns:
            Those on test samples, and on validation samples; None without validation.
        """
        test = self._of("test", self.test, params)
        if self.of_clients is not None:
            reported = self.of_clients(params, version)
            for name in reported:
                if name in test.metrics:
                    raise TrainingError(
                        f"clients report the metric {name!r}, and the run has one of this name: "
                        "leave one out, or reply with another name."
                    )
            finite = {n: v if math.isfinite(v) else None for n, v in reported.items()}
            test = test._replace(metrics={**test.metrics, **finite})
        held = self.validation
        return test, None if held is None else self._of("validation", held, params)

    def _of(self, kind: str, samples: EvaluationSamples, params: Tensor) -> Evaluated:
        measures, tested = self.measures, self.tested
        if tested is not None:
            samples, measures = tested.samples(kind, samples), tested.measures(measures)
        return measured(*self.deployed(params), samples, measures)


@dataclass(frozen=True, eq=False)
class ClientLosses:
    """Evaluates models on the samples of clients.

    Args:
        data: training data of all clients.
        tested: the submodel that is evaluated; None for the full model.
    """

    objective: Objective
    data: TrainingData
    tested: Submodels | None = None

    @torch.no_grad()
    def of(self, params: Tensor, clients: IntArray, samples: int | None = None) -> FloatArray:
        """Mean loss of each client [clients]; 0 for a client without samples.

        Batches contain samples of several clients. Sums are float64.

        Args:
            params: parameters [P] of the full model.
            clients: client numbers.
            samples: largest number of samples of a client, evenly spaced among its own; None for
                all.
        """
        objective, flat = deployed(self.objective, params, self.tested)
        tensors = objective.spec.views(flat)
        objective.module.eval()
        samples_of = [_spaced(self.data.source.client_samples[int(i)], samples) for i in clients]
        sizes = np.array([len(rows) for rows in samples_of], dtype=np.int64)
        rows = np.concatenate([np.empty(0, dtype=np.int64), *samples_of])
        losses = np.empty(len(rows))
        for first in range(0, len(rows), objective.test_batch):
            part = slice(first, first + objective.test_batch)
            x, y = self.data.batch(torch.from_numpy(rows[part]).to(self.data.inputs.device))
            with FastPooling():
                logits = logits_of(objective, tensors, x, y)
            losses[part] = objective.criterion.values(logits, y).double().cpu().numpy()
        client = np.repeat(np.arange(len(samples_of)), sizes)
        return np.asarray(np.bincount(client, losses, len(samples_of)) / np.maximum(sizes, 1))


def _spaced(rows: IntArray, count: int | None) -> IntArray:
    """At most ``count`` of the rows, evenly spaced: samples may be sorted by label."""
    rows = np.asarray(rows, dtype=np.int64)
    if count is None or len(rows) <= count:
        return rows
    return rows[np.arange(count) * len(rows) // count]
