"""Observers of a run: early stopping, best model, trackers, and your own."""

from wirelessfl.runs.observers import *  # noqa: F403, its names are in __all__
from wirelessfl.runs.observers import __all__ as __all__
