"""Public names of ``wirelessfl.runs.observers``."""

from wirelessfl.runs.observers import *  # noqa: F403, its names are in __all__
from wirelessfl.runs.observers import __all__ as __all__
