"""Fields of rows that come from evaluations, and the accuracy that is compared with targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wirelessfl.runs.directory import Row

VALIDATION = ("validation_accuracy", "validation_loss")
"""Fields of rows that exist only if training samples are held out."""


def finite(value: float) -> float | None:
    """``value``, or None if it is not finite, which JSON cannot represent."""
    return value if math.isfinite(value) else None


def evaluation_fields(
    test: tuple[float, float], validation: tuple[float, float] | None = None
) -> Row:
    """Fields of a row from (accuracy, loss) on test samples and, if any, on validation samples."""
    row: Row = {"accuracy": test[0], "loss": finite(test[1])}
    if validation is not None:
        row |= dict(zip(VALIDATION, (validation[0], finite(validation[1])), strict=True))
    return row


def deciding_accuracy(row: Mapping[str, Any]) -> float:
    """The accuracy used to compare with targets and to select rows.

    It is the validation accuracy or, without a validation set, the test accuracy.
    """
    found: float = row.get("validation_accuracy", row["accuracy"])
    return found
