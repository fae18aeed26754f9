"""Observers of a run: they see its rows and parameters, and may end it."""

from wirelessfl.observers.base import Observer, Running

__all__ = ["Observer", "Running"]
