"""The virtual clock in seconds, and the main loop, which hands decisions to a handler."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import title_of
from wirelessfl.engine.events import (
    Deadline,
    Decision,
    Event,
    Report,
    Save,
    Scheduler,
    Started,
    Stop,
    Tick,
    Wake,
)
from wirelessfl.engine.scheduler_checks import refuse

if TYPE_CHECKING:
    from torch import Tensor

    from wirelessfl.engine.server.learner import Learner


@dataclass
class Clock:
    """Queue of future events. The current time is that of the last event, and never decreases."""

    now: float = 0.0
    _queue: list[tuple[float, int, Any]] = field(default_factory=list)
    _sequence: int = 0

    def after(self, seconds: float, event: Any) -> None:
        """Schedule ``event`` after ``seconds``; simultaneous events keep the order of the calls."""
        if not 0.0 <= seconds < math.inf:
            raise ValueError(
                f"seconds is {seconds}: give a finite time >= 0 until the event. Is a client's "
                "data rate 0?"
            )
        heapq.heappush(self._queue, (self.now + seconds, self._sequence, event))
        self._sequence += 1

    def at(self, seconds: float, event: Any) -> None:
        """Schedule ``event`` at ``seconds``, which must not be in the past."""
        if not self.now <= seconds < math.inf:
            raise ValueError(
                f"seconds is {seconds}: give a finite time >= the current time {self.now}."
            )
        heapq.heappush(self._queue, (seconds, self._sequence, event))
        self._sequence += 1

    def next(self) -> Any:
        """Advance to the earliest event and return it; None if the queue is empty."""
        if not self._queue:
            return None
        self.now, _, event = heapq.heappop(self._queue)
        return event

    @property
    def upcoming(self) -> float:
        """Time of the earliest event; infinity if the queue is empty."""
        return self._queue[0][0] if self._queue else math.inf

    def queued(self) -> list[tuple[float, Any]]:
        """All future events with their times, in order."""
        return [(seconds, event) for seconds, _, event in sorted(self._queue, key=lambda e: e[:2])]

    def requeue(self, now: float, events: Iterable[tuple[float, Any]]) -> None:
        """Set the time to ``now`` and the future events to ``events``, as ``queued`` returns."""
        self.now, self._queue = now, []
        for seconds, event in events:
            self.at(seconds, event)


TIMED: dict[str, Any] = {"tick": Tick, "deadline": Deadline, "started": Started}
"""Events that a schedule or the run put on the clock, by name in a checkpoint."""


def stored_event(event: Any) -> list[Any]:
    """Encode a timed event as its name and its numbers."""
    for name, kind in TIMED.items():
        if type(event) is kind:
            return [name, *astuple(event)]
    raise AssertionError(f"unexpected entry of the clock: {event}")


def restored_event(name: str, *numbers: int) -> Event:
    """The inverse of ``stored_event``."""
    event: Event = TIMED[name](*numbers)
    return event


class RowFields(NamedTuple):
    """Fields of a row by their place: before the seconds, after them, and at the end."""

    head: Mapping[str, Any]
    costs: Mapping[str, Any]
    tail: Mapping[str, Any]


class Handler(ABC):
    """Carries out a schedule's decisions, for rounds, sessions, cells or tasks.

    Args:
        learners: the model of each task, or the only one.
    """

    starts_again: ClassVar[bool] = True
    """Whether resuming from a checkpoint restarts the work that was in progress."""
    ended: str | None = None
    """Why the run ends before its last round; None if it does not."""

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners = learners

    def start(self) -> None:  # noqa: B027, most handlers have none
        """Put the first entries of the handler on the clock: none."""

    def attach(self, rows: list[dict[str, Any]]) -> None:  # noqa: B027, most need no rows
        """Set the run's rows so far, which grow."""

    def happened(self, what: Any) -> Event | None:
        """Process an entry of the clock; return the event for the schedule, or None."""
        event: Event = what
        return event

    @abstractmethod
    def carry_out(self, decision: Decision) -> Event | None:
        """Carry out a decision; return an event that answers it, if any."""

    @abstractmethod
    def settle(self) -> object:
        """Issue work, after all events at this time."""

    @abstractmethod
    def costs(self) -> dict[str, Any]:
        """Costs so far, as in rows."""

    def names(self, report: Report) -> dict[str, Any]:
        """What else a row of prices has: the names of what its round belongs to; none."""
        return {}

    @abstractmethod
    def fields(self, report: Report) -> RowFields:
        """The fields of a row, without those of the evaluation."""

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the state, for a checkpoint, without those of the models: none."""
        return {}

    def snapshot(self) -> dict[str, Any]:
        """The rest of the state, as numbers, strings, lists and dicts: none."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:  # noqa: B027
        """Continue from a checkpoint, after models, schedule and clock."""


def begin(clock: Clock, max_seconds: float | None) -> None:
    """Put the start of the run on the clock, and its end if time is limited.

    Args:
        clock: virtual clock, at 0 or at the time of a checkpoint.
        max_seconds: simulated seconds at which the run ends; None for no limit.
    """
    clock.after(0.0, Started())
    if max_seconds is not None:
        clock.at(max(max_seconds, clock.now), Deadline())


def simulate(
    schedule: Scheduler,
    handler: Handler,
    clock: Clock,
    report: Callable[[Report], Event | Stop | None],
    save: Callable[[], None],
    *,
    tick_seconds: float = 1.0,
) -> None:
    """Run ``schedule`` to its end, starting from the events on the clock.

    Args:
        schedule: makes decisions on each event.
        handler: carries out its decisions.
        clock: virtual clock.
        report: evaluates a model, writes its row, and returns an event for the schedule, None, or
            ``Stop``, which ends the run regardless of the schedule's decisions.
        save: writes a checkpoint; called after all events at one time, if the schedule allows it.
        tick_seconds: simulated seconds between two ticks.
    """
    answers: deque[Event] = deque()
    savable = False
    last: Event = Started()
    while (what := clock.next()) is not None:
        event = handler.happened(what)
        while event is not None:
            last = event
            for decision in schedule.decide(event):
                answer: Event | None = None
                match decision:
                    case Report():
                        reply = report(decision)
                        if isinstance(reply, Stop):
                            return
                        answer = reply
                    case Save():
                        savable = True
                    case Wake(number):
                        clock.at(number * tick_seconds, Tick(number))
                    case Stop():
                        return
                    case _:
                        try:
                            answer = handler.carry_out(decision)
                        except Exception as error:
                            refuse(schedule, f"{decision} on {event}", error)
                            raise
                if answer is not None:
                    answers.append(answer)
            event = answers.popleft() if answers else None
        if clock.upcoming > clock.now:
            try:
                handler.settle()
            except Exception as error:
                refuse(schedule, f"its decisions up to {last}", error)
                raise
            if savable:
                save()
                savable = False
    raise ConfigError(
        f"scheduler {title_of(schedule)!r}: nothing can happen after {last}, because its decisions "
        "have issued no work. Return Give or Ask to issue work, Wake to decide later, or Stop to "
        "end the run."
    )
