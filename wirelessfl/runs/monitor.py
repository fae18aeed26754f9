"""The monitored field of rows: target, patience and the best model refer to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from wirelessfl.divergence import has_diverged
from wirelessfl.errors import ConfigError
from wirelessfl.metrics import smaller_is_better

DEFAULTS = ("validation_accuracy", "accuracy", "validation_loss", "loss")
"""Fields that are monitored by default: the first one that rows have."""


@dataclass(frozen=True)
class Monitor:
    """A field of rows whose values are compared.

    Args:
        field: name of the field, e.g. "accuracy" or "validation_loss".
        larger: whether larger values are better.
    """

    field: str
    larger: bool = True

    @classmethod
    def of(cls, field: str | None, row: Mapping[str, Any]) -> Monitor:
        """The monitor of a run.

        Args:
            field: the setting ``monitor``; None for the validation accuracy or, without a
                validation set, the test accuracy. Without accuracies it is the loss.
            row: a row of the run.
        """
        if field is None:
            return _default(next((name for name in DEFAULTS if name in row), DEFAULTS[-1]))
        return cls(field, not smaller_is_better(field))

    def score(self, row: Mapping[str, Any]) -> float:
        """The field's value, negated if smaller values are better; larger scores are better.

        It is minus infinity if the model has diverged or the row has no value.

        Raises:
            ConfigError: the field has several values.
        """
        value = row.get(self.field)
        if value is None or has_diverged(row):
            return -math.inf
        if isinstance(value, list):
            raise ConfigError(
                f"monitor is {self.field!r}, which has {len(value)} values: choose a field with "
                "one value."
            )
        return float(value) if self.larger else -float(value)

    def reached(self, row: Mapping[str, Any], target: float) -> bool:
        """Whether a row is at least as good as ``target``, in the field's own units."""
        score = self.score(row)
        return score > -math.inf and score >= (target if self.larger else -target)


@cache  # the rows of long runs are read again and again
def _default(field: str) -> Monitor:
    """The monitor of one of ``DEFAULTS``."""
    return Monitor.of(field, {})
