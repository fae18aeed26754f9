"""Metrics of the user: functions of outputs and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wirelessfl.metrics.metric import Metric, Predicted


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
        function: the function.
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


def own_metrics(functions: Mapping[str, Callable[..., Any]]) -> list[OwnMetric]:
    """The metrics that functions compute, by name of the field of rows."""
    return [OwnMetric(name, function) for name, function in functions.items()]
