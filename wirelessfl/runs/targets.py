"""Targets: the monitored field of rows, where a run reaches a value of it, and at what cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.rows import has_diverged
from wirelessfl.models.metrics import smaller_is_better

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
    return Monitor.of(field, {})


@dataclass(frozen=True)
class CostToTarget:
    """The cost until a target.

    Args:
        cost: the cost; that of the whole run if the target was not reached.
        reached: whether it was reached.
        before: the cost at the test before; None if it is the same.
    """

    cost: float
    reached: bool
    before: float | None = None

    @property
    def rounding(self) -> float:
        """Standard deviation of the logarithm of the cost within the interval between tests."""
        if self.before is None or not self.reached:
            return 0.0
        return math.log(self.cost / max(self.before, self.cost / 2)) / math.sqrt(12)


@dataclass(frozen=True, eq=False)
class ToTarget:
    """Where the rows of a run reach a target.

    Args:
        rows: the rows.
        place: index of the row that reaches it; None if none does.
    """

    rows: Sequence[Mapping[str, Any]]
    place: int | None

    @property
    def reached(self) -> bool:
        """Whether the target is reached."""
        return self.place is not None

    @property
    def row(self) -> Mapping[str, Any]:
        """The row that reaches it; the last one if none does."""
        return self.rows[-1 if self.place is None else self.place]

    def of(self, field: str) -> CostToTarget:
        """The cost until the target by a field of rows, such as "sim_seconds"."""
        before = float(self.rows[self.place - 1][field]) if self.place else None
        return CostToTarget(float(self.row[field]), self.reached, before)


def cost_to(
    rows: Sequence[Mapping[str, Any]], target: float, tests: int = 1, monitor: Monitor | None = None
) -> ToTarget:
    """Where the mean score of the last tests of a run first reaches a target.

    >>> rows = [{"accuracy": value, "sim_seconds": 2.0 * n} for n, value in enumerate((0.1, 0.6))]
    >>> cost_to(rows, 0.5).of("sim_seconds")
    CostToTarget(cost=2.0, reached=True, before=0.0)

    Args:
        rows: rows of a run or of one of its tasks.
        target: the target, e.g. an accuracy in [0, 1].
        tests: number of tests that are averaged, because a single one may reach the target by
            chance; the row of the last of them counts.
        monitor: what the target refers to; None for the accuracy, on validation samples if there
            are any, or for minus the loss.
    """
    if monitor is not None and not monitor.larger:
        target = -target
    last: list[float] = []
    for place, row in enumerate(rows):
        score = (Monitor.of(None, row) if monitor is None else monitor).score(row)
        last = [*last, score][-tests:]
        if len(last) == tests and (score if tests == 1 else math.fsum(last) / tests) >= target:
            return ToTarget(rows, place)
    return ToTarget(rows, None)
