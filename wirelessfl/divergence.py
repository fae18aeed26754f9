"""Divergence in rows: which rows count, and the values of the others in means and curves.

A model whose loss or parameters are not finite has a measured accuracy, because it predicts the
first class, but it has learnt nothing; nor has one whose loss has exploded. Its row has the loss
None, reaches no target and is never the best one. Each row counts by itself: an infinite loss may
become finite again, and a session may start with another model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


def has_diverged(row: Row) -> bool:
    """Whether the model of a row or summary has diverged: a loss is None."""
    return row.get("loss", 0.0) is None or row.get("validation_loss", 0.0) is None


def as_mean_value(row: Row, field: str = "accuracy") -> float:
    """An accuracy or loss of a row in means and curves.

    If the model has diverged, its accuracy counts as 0, and its loss is nan.
    """
    if not has_diverged(row):
        return float(row[field])
    return 0.0 if field.endswith("accuracy") else math.nan
