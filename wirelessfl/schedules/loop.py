"""The one loop: events on the virtual clock in, decisions of the schedule carried out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import (
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


class Regime(Protocol):
    """Carries out a schedule's decisions, for rounds, sessions or tasks."""

    def happened(self, what: Any) -> Event | None:
        """The event that the schedule learns of from an entry of the clock; None: no event."""

    def carry_out(self, decision: Decision) -> Event | None:
        """Carry out a decision; its answer, an event for the schedule, if any."""

    def settle(self) -> None:
        """Issue the work decided in this instant, at its end."""


def begin(clock: Clock, max_seconds: float | None) -> None:
    """Put the start on the clock, and the end, if there is a limit.

    Args:
        clock: virtual seconds, at 0 or where a checkpoint left them.
        max_seconds: when the run ends; None: no limit.
    """
    clock.after(0.0, Started())
    if max_seconds is not None:
        clock.at(max(max_seconds, clock.now), Deadline())


def simulate(
    schedule: Scheduler,
    regime: Regime,
    clock: Clock,
    report: Callable[[Report], Event | None],
    save: Callable[[], None],
    *,
    tick_seconds: float = 1.0,
) -> None:
    """Run ``schedule`` to its end, from the events that the clock holds.

    Args:
        schedule: decides what follows from each event.
        regime: carries its decisions out.
        clock: virtual seconds.
        report: evaluates a model and writes its row; what the schedule is told of it.
        save: called where the schedule allows it, at the end of an instant.
        tick_seconds: between two ticks that the schedule asks for.
    """
    answers: deque[Event] = deque()
    savable = False
    while (what := clock.next()) is not None:
        event = regime.happened(what)
        while event is not None:
            for decision in schedule.decide(event):
                answer: Event | None = None
                match decision:
                    case Report():
                        answer = report(decision)
                    case Save():
                        savable = True
                    case Wake(number):
                        clock.at(number * tick_seconds, Tick(number))
                    case Stop():
                        return
                    case _:
                        answer = regime.carry_out(decision)
                if answer is not None:
                    answers.append(answer)
            event = answers.popleft() if answers else None
        if clock.upcoming > clock.now:
            regime.settle()
            if savable:
                save()
                savable = False
