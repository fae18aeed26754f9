"""Further metrics of rows by name, and your own."""

from wirelessfl.models.metrics import *  # noqa: F403, its names are in __all__
from wirelessfl.models.metrics import __all__ as __all__
