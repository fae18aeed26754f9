"""What carries out the decisions of a schedule, as the loop and the engine of a run see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from wirelessfl.schedules.events import Decision, Event, Report

if TYPE_CHECKING:
    from torch import Tensor


class Handler(Protocol):
    """Carries out a schedule's decisions, for rounds, sessions, cells or tasks."""

    def happened(self, what: Any) -> Event | None:
        """Process an entry of the clock; return the event for the schedule, or None."""

    def carry_out(self, decision: Decision) -> Event | None:
        """Carry out a decision; return an event that answers it, if any."""

    def settle(self) -> None:
        """Dispatch the work issued at this time, after all events at this time."""


class RowFields(NamedTuple):
    """Fields of a row by their place: before the seconds, after them, and at the end."""

    head: Mapping[str, Any]
    costs: Mapping[str, Any]
    tail: Mapping[str, Any]


class RunHandler(ABC):
    """The handler of a run, whose rows and checkpoints are written."""

    starts_again: ClassVar[bool] = True
    """Whether resuming from a checkpoint restarts the work that was in progress."""
    ended: str | None = None
    """Why the run ends before its last round; None if it does not."""

    def start(self) -> None:  # noqa: B027, most handlers have none
        """Put the first entries of the handler on the clock: none."""

    def attach(self, rows: list[dict[str, Any]]) -> None:  # noqa: B027, most need no rows
        """Set the run's rows so far, which grow."""

    def happened(self, what: Any) -> Event | None:
        """Return the clock entry ``what``, which already is an event for the schedule."""
        event: Event = what
        return event

    @abstractmethod
    def carry_out(self, decision: Decision) -> Event | None:
        """Carry out a decision of the schedule."""

    @abstractmethod
    def settle(self) -> None:
        """Issue work, after all events at this time."""

    @abstractmethod
    def fields(self, report: Report) -> RowFields:
        """The fields of a row, without those of the evaluation."""

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the state, for a checkpoint, without those of the models: none."""
        return {}

    def snapshot(self) -> dict[str, Any]:
        """The rest of the state, as numbers, strings, lists and dicts: none."""
        return {}

    def restore(  # noqa: B027, most handlers have nothing else
        self, tensors: dict[str, Tensor], state: dict[str, Any]
    ) -> None:
        """Continue from a checkpoint, after models, schedule and clock."""
