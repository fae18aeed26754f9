"""Schedules: when clients get work, when nodes merge, on one virtual clock in seconds."""

from wirelessfl.schedules.clock import Clock
from wirelessfl.schedules.synchronous import Synchronous

__all__ = ["Clock", "Synchronous"]
