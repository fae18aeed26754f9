"""Fields of rows that come from evaluations, and the accuracy that is compared with targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from wirelessfl.divergence import has_diverged
from wirelessfl.errors import TrainingError
from wirelessfl.runs.directory import Row

VALIDATION = ("validation_accuracy", "validation_loss")
"""Fields of rows that exist only if training samples are held out."""


def finite(value: float) -> float | None:
    """``value``, or None if it is not finite, which JSON cannot represent."""
    return value if math.isfinite(value) else None


def evaluation_fields(
    params: Tensor, test: tuple[float, float], validation: tuple[float, float] | None = None
) -> Row:
    """Fields of a row; losses are None if they or the model's parameters are not finite.

    Args:
        params: parameters [P] of the full model.
        test: accuracy and loss on test samples.
        validation: the same on validation samples, if any.
    """
    whole = bool(params.isfinite().all())
    row: Row = {"accuracy": test[0], "loss": finite(test[1]) if whole else None}
    if validation is not None:
        held = validation[0], finite(validation[1]) if whole else None
        row |= dict(zip(VALIDATION, held, strict=True))
    return row


def deciding_accuracy(row: Mapping[str, Any]) -> float:
    """The accuracy used to compare with targets and to select rows.

    It is the validation accuracy or, without a validation set, the test accuracy. If the model has
    diverged, it is minus infinity, below every target and every other row.
    """
    if has_diverged(row):
        return -math.inf
    found: float = row.get("validation_accuracy", row["accuracy"])
    return found


def check_finite(row: Row) -> None:
    """Check that sums over rounds have not overflowed; JSON has no infinity.

    Raises:
        TrainingError: simulated seconds or joules are infinite.
    """
    for name, remedy in (
        ("sim_seconds", "Raise bandwidth_hz, snr_db or cpu_hz"),
        ("joules", "Lower transmit_power_w or cycles_per_step, or raise bandwidth_hz"),
    ):
        if not math.isfinite(row[name]):
            raise TrainingError(
                f"{name} is {row[name]} in round {row['round']}: the sum over the rounds exceeds "
                f"the largest number. {remedy}."
            )
