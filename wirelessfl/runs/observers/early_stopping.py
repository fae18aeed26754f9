"""Early stopping: ends a run, or one of its tasks, that no longer improves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown, suggestion
from wirelessfl.runs.observers.observer import EndOfTask, Observer, Row, Running


@dataclass
class _Best:
    """The best row of a task so far, and the number of rows since."""

    score: float = -math.inf
    row: Row | None = None
    waited: int = 0


@dataclass(eq=False)
class EarlyStopping(Observer):
    """Ends a run after ``patience`` evaluations without improvement.

    A task of several ends on its own, as at its target, and the run ends with its last task.

    >>> import wirelessfl
    >>> from wirelessfl.observers import EarlyStopping
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=9, out="short-run")
    >>> result = wirelessfl.run(settings, observers=[EarlyStopping(patience=1, min_delta=1.0)])
    >>> len(result.rows), result.exhausted[:25]
    (2, 'accuracy has not improved')

    Args:
        patience: number of consecutive rows without improvement, >= 1. Row 0, of the initial model,
            is the first to improve on.
        min_delta: an improvement is larger than this, >= 0, in the unit of the field.
        monitor: field of the rows to compare, e.g. "loss"; None for the run's monitored field.

    Raises:
        ConfigError: a value is out of range.
    """

    patience: int
    min_delta: float = 0.0
    monitor: str | None = None
    _best: dict[Any, _Best] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        whole = isinstance(self.patience, int) and not isinstance(self.patience, bool)
        if not whole or self.patience < 1:
            raise ConfigError(f"patience is {shown(self.patience)}: give a whole number >= 1.")
        number = isinstance(self.min_delta, int | float) and not isinstance(self.min_delta, bool)
        if not number or not 0 <= self.min_delta < math.inf:
            raise ConfigError(f"min_delta is {shown(self.min_delta)}: give a number >= 0.")

    def begin(self, run: Running) -> None:
        """Count the rows before an interruption."""
        self._best = {}
        for row in run.rows:
            self._count(run, row)

    def row(self, run: Running, row: Row) -> str | None:
        """Return the reason to end after ``patience`` rows without improvement."""
        best = self._count(run, row)
        if best.waited < self.patience:
            return None
        name = run.monitor(row, self.monitor).field.replace("_", " ")
        least = f" by more than {self.min_delta:g}" if self.min_delta else ""
        times = "1 evaluation" if self.patience == 1 else f"{self.patience} evaluations"
        reason = f"{name} has not improved{least} in {times}"
        if best.row is not None:
            value = best.row[run.monitor(row, self.monitor).field]
            reason += f", since {value:.4g} in round {best.row['round']}"
        return EndOfTask(reason)

    def _count(self, run: Running, row: Row) -> _Best:
        monitor = run.monitor(row, self.monitor)
        if monitor.field not in row:
            numbers = [name for name, value in row.items() if isinstance(value, float)]
            raise ConfigError(
                f"monitor is {shown(monitor.field)}, which rows do not have."
                f"{suggestion(monitor.field, numbers)} Choose one of {', '.join(numbers)}."
            )
        best, score = self._best.setdefault(row.get("task"), _Best()), monitor.score(row)
        if score > best.score + self.min_delta:
            best.score, best.row, best.waited = score, row, 0
        else:
            best.waited += 1
        return best
