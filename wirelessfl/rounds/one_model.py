"""What the regimes of one model have in common; they differ in what is given, and when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.planner import Planner
from wirelessfl.rounds.redesigns import Redesigns
from wirelessfl.rounds.training import RoundTraining
from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import Decision, Event

if TYPE_CHECKING:
    from torch import Tensor


class OneModel(ABC):
    """Carries out the decisions of a schedule for one model, see ``schedules.loop.Regime``.

    Args:
        planner: plans rounds and their durations.
        training: trains and merges, and contains the server.
        clock: virtual clock.
    """

    starts_again: ClassVar[bool] = True
    """Whether resuming from a checkpoint restarts the work that was in progress."""
    ended: str | None = None
    """Why the run ends before its last round; None if it does not."""
    redesigns: Redesigns | None = None
    """Decide how rounds train and send; None if all do as configured."""

    def __init__(self, planner: Planner, training: RoundTraining, clock: Clock) -> None:
        self.planner, self.training, self.clock = planner, training, clock

    @property
    def merged_at(self) -> float:
        """Simulated time of the last merge, which the end of the run may follow."""
        return self.clock.now

    def start(self) -> None:  # noqa: B027, most regimes have none
        """Put the first entries of the regime on the clock: none."""

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

    def under_way(self) -> Mapping[int, Plan]:
        """Plans of the rounds in progress of single cells, by cell: none."""
        return {}

    def fields(self, status: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Fields of a row before and after those of all runs, given the report's: none."""
        return {}, {}

    def priced(self) -> Mapping[str, Any]:
        """Fields of a row of prices besides those of all runs: none."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the state, for a checkpoint: those of model, server and clients."""
        return self.training.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Further entries of a checkpoint, as plain numbers and lists: none."""
        return {}

    def restore(  # noqa: B027, most regimes have nothing else
        self, tensors: dict[str, Tensor], state: Mapping[str, Any]
    ) -> None:
        """Continue from a checkpoint, after training, schedule and clock."""
