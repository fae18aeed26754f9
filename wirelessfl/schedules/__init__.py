"""Schedules: when clients get work and when nodes merge, on one virtual clock in seconds.

One schedule per file. Files in this folder are discovered automatically.
"""

from wirelessfl.registry import Kind
from wirelessfl.schedules.buffered import Buffered
from wirelessfl.schedules.buffered_scheduler import BufferedScheduler
from wirelessfl.schedules.clock import Clock
from wirelessfl.schedules.rounds import Rounds, RoundsScheduler
from wirelessfl.schedules.schedule import Schedule, Scope
from wirelessfl.schedules.session_schedule import SessionsScheduler
from wirelessfl.schedules.simultaneous import Simultaneous, SimultaneousScheduler
from wirelessfl.schedules.task_counts import TaskPlan
from wirelessfl.schedules.task_session_schedule import TaskSessionsScheduler

SCHEDULES: Kind[Schedule] = Kind(
    "schedule",
    __name__,
    Schedule,
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
    "TaskSessionsScheduler",
]
