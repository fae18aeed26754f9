"""Schedules: when clients get work, when nodes merge, on one virtual clock in seconds."""

from wirelessfl.schedules.buffered import BufferedScheduler
from wirelessfl.schedules.clock import Clock
from wirelessfl.schedules.rounds import RoundsScheduler
from wirelessfl.schedules.sessions import SessionsScheduler
from wirelessfl.schedules.simultaneous import SimultaneousScheduler
from wirelessfl.schedules.task_counts import TaskPlan

__all__ = [
    "BufferedScheduler",
    "Clock",
    "RoundsScheduler",
    "SessionsScheduler",
    "SimultaneousScheduler",
    "TaskPlan",
]
