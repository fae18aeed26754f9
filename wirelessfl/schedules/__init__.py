"""Schedules: when clients get work, when nodes merge, on one virtual clock in seconds."""

from wirelessfl.schedules.buffered import Buffered, TaskPlan
from wirelessfl.schedules.clock import Clock
from wirelessfl.schedules.sessions import Sessions
from wirelessfl.schedules.simultaneous import Simultaneous
from wirelessfl.schedules.synchronous import Synchronous

__all__ = ["Buffered", "Clock", "Sessions", "Simultaneous", "Synchronous", "TaskPlan"]
