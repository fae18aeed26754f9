"""Schedules: when clients get work and when nodes merge, on one virtual clock in seconds.

Files in this folder are discovered automatically.
"""

from wirelessfl.base.needs import Suits
from wirelessfl.base.registry import Kind
from wirelessfl.engine.loop import Clock
from wirelessfl.engine.schedules.buffered import Buffered
from wirelessfl.engine.schedules.buffered_scheduler import BufferedScheduler, TaskPlan
from wirelessfl.engine.schedules.rounds import Rounds, RoundsScheduler, SessionsScheduler
from wirelessfl.engine.schedules.schedule import Schedule, Scope
from wirelessfl.engine.schedules.simultaneous import Simultaneous, SimultaneousScheduler

SUITABLE = (
    Suits(
        lambda run, _: run.regime.of_tasks or run.schedule.work != "task rounds",
        'algorithm "{run.settings.tables[algorithm][name]}" has cells, and schedule '
        '"{run.settings.tables[schedule][name]}" trains several tasks with one server each. Choose '
        'schedule "rounds" or "buffered", or an algorithm without cells',
    ),
    Suits(
        lambda run, _: run.regime.of_tasks or not run.settings.task,
        lambda run, _: (
            f'schedule "{run.settings.named("schedule")}" trains one model of algorithm '
            f'"{run.settings.named("algorithm")}", but there are {len(run.settings.task)} task '
            'tables. Choose schedule "buffered" or "simultaneous" with an algorithm without cells, '
            "or leave the tables out"
        ),
    ),
    Suits(
        lambda run, _: (
            run.schedule.work == "rounds"
            or run.regime.of_tasks
            or not run.settings.used_assigner.plans_ahead
        ),
        'algorithm "{run.settings.tables[algorithm][name]}" plans its rounds in advance with these '
        "settings (budget deadline or fastest, min_coverage, masks partition), which conflicts "
        'with schedule "{run.settings.tables[schedule][name]}": choose other values, or schedule '
        '"rounds"',
    ),
)
"""Algorithms and tables of tasks that suit the schedule."""
SCHEDULES: Kind[Schedule] = Kind(
    "schedule",
    __name__,
    Schedule,
    table=SUITABLE,
    text="when clients get work and servers merge",
    heading="schedule",
)
"""All schedules: when clients get work and when servers merge."""

__all__ = [
    "SCHEDULES",
    "Buffered",
    "BufferedScheduler",
    "Clock",
    "Rounds",
    "RoundsScheduler",
    "Schedule",
    "Scope",
    "SessionsScheduler",
    "Simultaneous",
    "SimultaneousScheduler",
    "TaskPlan",
]
