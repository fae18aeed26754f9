"""Fields of rows that evaluations fill, and the accuracy that decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wirelessfl.runs.directory import Row

VALIDATION = ("validation_accuracy", "validation_loss")
"""Fields of rows, only where training samples are held out."""


def finite(value: float) -> float | None:
    """``value``, or None for a number that JSON cannot hold."""
    return value if math.isfinite(value) else None


def evaluation_fields(
    test: tuple[float, float], validation: tuple[float, float] | None = None
) -> Row:
    """Fields of a row from accuracy and loss on test samples, and on validation samples if any."""
    row: Row = {"accuracy": test[0], "loss": finite(test[1])}
    if validation is not None:
        row |= dict(zip(VALIDATION, (validation[0], finite(validation[1])), strict=True))
    return row


def deciding_accuracy(row: Mapping[str, Any]) -> float:
    """The accuracy that targets and selections go by: on validation samples where there are some.

    Without a validation set it is that on the test samples.
    """
    found: float = row.get("validation_accuracy", row["accuracy"])
    return found
