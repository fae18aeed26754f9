"""The one loop: events on the virtual clock in, decisions of the schedule carried out."""

from __future__ import annotations

from collections.abc import Callable

from wirelessfl.schedules import Clock
from wirelessfl.schedules.base import Arrived, Give, Merge, Report, Save, Schedule, Started, Stop
from wirelessfl.simulation.plan import Plan, Planner
from wirelessfl.simulation.world import World
from wirelessfl.training.rules import State


def simulate(
    schedule: Schedule,
    planner: Planner,
    world: World,
    clock: Clock,
    report: Callable[[int], None],
    save: Callable[[], None],
) -> None:
    """Run ``schedule`` to its end.

    Work is planned, and so its duration known, when it is given out; it is trained when its result
    is needed.

    Args:
        schedule: decides what follows from each event.
        planner: turns work into a plan with its duration.
        world: trains and merges.
        clock: virtual seconds; its present time is where the run begins.
        report: called with a round's number when the model is to be evaluated.
        save: called when nothing is under way.
    """
    given: dict[int, tuple[Plan, State]] = {}
    clock.after(0.0, Started())
    while (event := clock.next()) is not None:
        for decision in schedule.decide(event):
            match decision:
                case Give(work):
                    plan = planner.plan(work)
                    given[work] = plan, world.cloud
                    clock.after(float(plan.cost.seconds.max()), Arrived(work))
                case Merge(work):
                    world.train(*given.pop(work))
                case Report(number):
                    report(number)
                case Save():
                    save()
                case Stop():
                    return
