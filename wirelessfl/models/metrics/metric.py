"""Metrics of a run: the interface, users' functions, and the values in rows."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, described
from wirelessfl.base.registry import Choice
from wirelessfl.models.losses import Accuracy


@dataclass(frozen=True, eq=False)
class Predicted:
    """A model's outputs for all test samples.

    >>> import torch
    >>> from wirelessfl.metrics import Predicted, find_metric
    >>> outputs, labels = torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0])
    >>> tested = Predicted(outputs, labels, accuracy="classes", classes=2)
    >>> round(find_metric("macro-f1").value(tested), 3)
    0.333

    Args:
        outputs: [samples, ...].
        labels: [samples, ...].
        accuracy: what counts as right; None if outputs are neither right nor wrong.
        classes: number of outputs of the model.
        shares: [clients, classes], fraction of each label among the samples of each client; None
            if no metric needs it.
    """

    outputs: torch.Tensor
    labels: torch.Tensor
    accuracy: Accuracy | None
    classes: int
    shares: FloatArray | None = None

    @property
    def one_hot(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Labels and predictions, [entries, classes], booleans: of samples or of pixels."""
        if self.accuracy == "signs":
            shape = self.labels.shape
            flat = (self.labels > 0.5, self.outputs.reshape(shape) > 0)
            truth, predicted = (part.reshape(len(part), -1) for part in flat)
            return truth, predicted
        number = torch.arange(self.classes, device=self.labels.device)
        truth, predicted = (
            part.reshape(-1, 1) == number for part in (self.labels, self.outputs.argmax(1))
        )
        return truth, predicted


@dataclass(frozen=True)
class Metric(Choice, ABC):
    """Base class of metrics.

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from wirelessfl.metrics import Measures, Metric
    >>> @dataclass(frozen=True)
    ... class LargestError(Metric):
    ...     # The largest absolute error of an output
    ...     name = "largest-error"
    ...     smaller = True
    ...     def value(self, tested):
    ...         return float((tested.outputs - tested.labels).abs().max())
    >>> measures = Measures((LargestError(),), accuracy=None, classes=1)
    >>> measures.of(torch.tensor([[1.0], [2.0]]), torch.tensor([[0.5], [0.5]]))
    {'largest_error': 1.5}
    """

    name = "metric"

    smaller: ClassVar[bool] = False
    """Whether smaller values are better; to be monitored, its name must then end in "loss"."""
    by_clients: ClassVar[bool] = False
    """Whether the metric needs the labels of clients."""

    @property
    def field(self) -> str:
        """Name of the field of rows."""
        return self.name.replace("-", "_")

    def why_not(self, labels: torch.Tensor, accuracy: Accuracy | None) -> str | None:
        """Why the metric does not apply, as "needs ..."; None if it does.

        Args:
            labels: labels of the training samples.
            accuracy: what counts as right; None if outputs are neither right nor wrong.
        """
        return None

    @abstractmethod
    def value(self, tested: Predicted) -> float | Sequence[float]:
        """The metric of all test samples."""


@dataclass(frozen=True)
class OfClasses(Metric):
    """Base class of metrics of classes, or of several labels per sample."""

    name = ""

    def why_not(self, labels: torch.Tensor, accuracy: Accuracy | None) -> str | None:
        """Real labels have no classes."""
        return None if accuracy is not None else "needs classes, but the labels are real numbers"


@dataclass(frozen=True)
class OfReals(Metric):
    """Base class of metrics of regression: means over the labels of a sample."""

    name = ""

    def why_not(self, labels: torch.Tensor, accuracy: Accuracy | None) -> str | None:
        """Integer labels are classes."""
        if labels.dtype == torch.float32 and accuracy is None:
            return None
        return "needs real labels, float32, and a loss of regression such as mse"

    def value(self, tested: Predicted) -> float:
        """The mean over the labels of a sample."""
        labels = tested.labels.double()
        outputs = tested.outputs.double().reshape(labels.shape)
        return float(self.of(outputs.reshape(len(labels), -1), labels.reshape(len(labels), -1)))

    @abstractmethod
    def of(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The metric of [samples, labels], float64."""


@dataclass(frozen=True)
class OwnMetric(Metric):
    """A metric that a function ``f(outputs, labels) -> float`` of the user computes.

    The function gets the outputs [samples, ...] and labels [samples, ...] of all test samples, on
    the CPU, and returns a number or a list of numbers.

    >>> import torch
    >>> from wirelessfl.metrics import Measures, OwnMetric
    >>> def bias(outputs, labels):
    ...     return float((outputs - labels).mean())
    >>> measures = Measures((OwnMetric("bias", bias),), accuracy=None, classes=1)
    >>> measures.of(torch.tensor([[1.0], [2.0]]), torch.tensor([[0.5], [0.5]]))
    {'bias': 1.0}

    Args:
        called: name of the field of rows.
    """

    name = ""

    called: str
    function: Callable[..., Any]

    @property
    def field(self) -> str:
        """Name of the field of rows."""
        return self.called

    def value(self, tested: Predicted) -> Any:
        """See :class:`Metric`."""
        return self.function(tested.outputs.cpu().clone(), tested.labels.cpu().clone())


def own_metrics(functions: Mapping[str, Callable[..., Any] | Metric]) -> list[Metric]:
    """The metrics that functions compute, by name of the field of rows, or that are given."""
    return [
        entry if isinstance(entry, Metric) else OwnMetric(name, entry)
        for name, entry in functions.items()
    ]


MOST_SHARES = 10**8
"""Largest number of clients times classes whose label shares are held in memory."""


@dataclass(frozen=True, eq=False)
class Measures:
    """The metrics of a model.

    >>> import torch
    >>> from wirelessfl.metrics import Measures, find_metric
    >>> measures = Measures((find_metric("macro-f1"),), classes=2)
    >>> measures.of(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 1]))
    {'macro_f1': 1.0}

    Args:
        metrics: the metrics.
        accuracy: what counts as right; None if outputs are neither right nor wrong.
        classes: number of outputs of the model.
        shares: see ``Predicted``.
    """

    metrics: tuple[Metric, ...] = ()
    accuracy: Accuracy | None = "classes"
    classes: int = 0
    shares: FloatArray | None = None

    def __bool__(self) -> bool:
        return bool(self.metrics)

    def of_clients(self, present: BoolArray) -> Measures:
        """The metrics of some clients, [clients] boolean."""
        return self if self.shares is None else replace(self, shares=self.shares[present])

    def of(self, outputs: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
        """The metrics by field of rows; None for values that are not finite.

        Without outputs that are all finite, no metric is computed.
        """
        if not bool(outputs.isfinite().all()):
            return {metric.field: None for metric in self.metrics}
        tested = Predicted(outputs, labels, self.accuracy, self.classes, self.shares)
        values = {}
        for metric in self.metrics:
            with calling(f"metric {metric.field!r}"):
                value = metric.value(tested)
            values[metric.field] = _plain(metric.field, value)
        return values


def _plain(name: str, value: Any) -> Any:
    """A number, or a list of numbers, as JSON represents it."""
    listed = value.tolist() if isinstance(value, torch.Tensor | np.ndarray | np.generic) else value
    several = isinstance(listed, Sequence) and not isinstance(listed, str)
    entries: list[Any] = list(listed) if several else [listed]
    if not all(isinstance(number, numbers.Real) for number in entries):
        raise ConfigError(
            f"metric {name!r} returned {described(value)}: return a number, or a list of numbers."
        )
    plain = [float(number) if math.isfinite(number) else None for number in entries]
    return plain if several else plain[0]


def label_shares(
    labels: torch.Tensor, client_samples: Sequence[IntArray], classes: int
) -> FloatArray:
    """Fraction of each label among the samples of each client, [clients, classes].

    >>> import numpy as np
    >>> import torch
    >>> from wirelessfl.metrics import label_shares
    >>> clients = [np.array([0, 1]), np.array([2, 3])]
    >>> label_shares(torch.tensor([0, 0, 0, 1]), clients, classes=2).tolist()
    [[1.0, 0.0], [0.5, 0.5]]

    Args:
        labels: [samples], int64.
        classes: number of classes.
    """
    if len(client_samples) * classes > MOST_SHARES:
        raise ConfigError(
            f"a metric needs the label shares of {len(client_samples)} clients with {classes} "
            f"classes, more than {MOST_SHARES:.0e} numbers: leave the metric out, or use fewer "
            "clients."
        )
    classes_of = labels.numpy()
    counts = np.empty((len(client_samples), classes))
    for client in range(len(client_samples)):
        counts[client] = np.bincount(classes_of[client_samples[client]], minlength=classes)
    return np.asarray(counts / np.maximum(counts.sum(1, keepdims=True), 1))
