"""The monitored field of rows: target, patience and the best model refer to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wirelessfl.divergence import has_diverged


@dataclass(frozen=True)
class Monitor:
    """A field of rows whose values are compared.

    Args:
        field: name of the field, e.g. "accuracy" or "validation_loss".
        larger: whether larger values are better.
    """

    field: str
    larger: bool = True

    def score(self, row: Mapping[str, Any]) -> float:
        """The field's value, negated if smaller values are better; larger scores are better.

        It is minus infinity if the model has diverged or the row has no value.
        """
        value = row.get(self.field)
        if value is None or has_diverged(row):
            return -math.inf
        return float(value) if self.larger else -float(value)

    def reached(self, row: Mapping[str, Any], target: float) -> bool:
        """Whether a row is at least as good as ``target``, in the field's own units."""
        score = self.score(row)
        return score > -math.inf and score >= (target if self.larger else -target)
