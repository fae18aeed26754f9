"""The metrics of a run: which are computed, and their values in rows."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, described
from wirelessfl.models.losses import Accuracy
from wirelessfl.models.metrics.metric import Metric, Predicted

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

        Raises:
            ConfigError: a metric is neither a number nor a list of numbers.
            TrainingError: a metric has raised an exception.
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
        client_samples: indices of each client's samples.
        classes: number of classes.

    Raises:
        ConfigError: there are too many clients to hold their shares in memory.
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
