"""Losses by name, also of labels of other shapes, and your own."""

from wirelessfl.models.losses import *  # noqa: F403, its names are in __all__
from wirelessfl.models.losses import __all__ as __all__
