"""The main loop: pass events on the virtual clock to the schedule, and carry out its decisions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.guard import of_project, title_of
from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import (
    Deadline,
    Event,
    Report,
    Save,
    Scheduler,
    Started,
    Stop,
    Tick,
    Wake,
)
from wirelessfl.schedules.handler import Handler


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

    Raises:
        ConfigError: the schedule of a user makes decisions that cannot be carried out, or the run
            has no further event although the schedule has not ended it.
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
                        told = report(decision)
                        if isinstance(told, Stop):
                            return
                        answer = told
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


def refuse(schedule: Scheduler, decided: str, error: Exception) -> None:
    """Blame a user's schedule for decisions that cannot be carried out.

    Args:
        schedule: the scheduler.
        decided: its decisions, in words.
        error: the error of its handler.

    Raises:
        ConfigError: the schedule is a user's, and the error does not explain itself.
    """
    explained = isinstance(error, ConfigError | DataError | TrainingError | OSError | MemoryError)
    if explained or of_project(type(schedule)):
        return
    raise ConfigError(
        f"scheduler {title_of(schedule)!r}: decide returned {decided}, which cannot be carried out "
        f"({type(error).__name__}: {' '.join(str(error).split())}). Return decisions on tasks, "
        "rounds and requests that exist: merge what has arrived and is not merged yet."
    ) from error
