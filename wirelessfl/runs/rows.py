"""Fields of rows that come from evaluations."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from wirelessfl.errors import ConfigError, TrainingError
from wirelessfl.metrics import Measures
from wirelessfl.metrics.names import VALIDATION as HELD
from wirelessfl.runs.directory import Row
from wirelessfl.runs.monitor import Monitor
from wirelessfl.setup.setups import Goal
from wirelessfl.training.evaluate import Evaluated

VALIDATION = ("validation_accuracy", "validation_loss")
"""Fields of rows that exist only if training samples are held out."""
LOSSES = ("loss", "validation_loss")
EXPLODED = 1e4
"""A loss this many times that of the initial model, or of 1 if that is larger, has exploded."""


def finite(value: float) -> float | None:
    """``value``, or None if it is not finite, which JSON cannot represent."""
    return value if math.isfinite(value) else None


def reached(goal: Goal, row: Row) -> bool:
    """Whether a row has reached the target of its model; it has not if there is none."""
    return goal.target is not None and Monitor.of(goal.field, row).reached(row, goal.target)


def evaluation_fields(
    params: torch.Tensor, test: Evaluated, validation: Evaluated | None = None
) -> Row:
    """Fields of a row; losses are None if they or the model's parameters are not finite.

    There is no accuracy if outputs are neither right nor wrong, as in regression.

    Args:
        params: parameters [P] of the full model.
        test: accuracy, loss and metrics on test samples.
        validation: the same on validation samples, if any.
    """
    whole = bool(params.isfinite().all())
    row: Row = {}
    for prefix, found in (("", test), (HELD, validation)):
        if found is None:
            continue
        if found.accuracy is not None:
            row[f"{prefix}accuracy"] = found.accuracy
        row[f"{prefix}loss"] = finite(found.loss) if whole else None
        row |= {f"{prefix}{name}": value for name, value in found.metrics.items()}
    return row


def drop_exploded(row: Row, first: Row) -> None:
    """Replace losses that have exploded by None: the model has diverged.

    Args:
        row: the row, which is changed.
        first: the first row of the same model.
    """
    for name in LOSSES:
        value = row.get(name)
        if value is not None and value > EXPLODED * max(first.get(name) or 0.0, 1.0):
            row[name] = None


def check_apart(uplink: Mapping[str, float], measures: Measures) -> None:
    """Check that no metric has the name of a field that the uplink adds to rows.

    Raises:
        ConfigError: one has.
    """
    for metric in measures.metrics:
        if metric.field in uplink:
            raise ConfigError(
                f"a metric is called {metric.field!r}, and so is a measurement of the uplink, "
                "which is a field of rows already: give another name."
            )


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
