"""Where base stations and clients are. One layout per file."""

from channels.layouts.disc import Disc
from channels.layouts.file import FileLayout
from channels.layouts.hexagonal import Hexagonal
from channels.layouts.layout import Layout, Positions
from channels.layouts.ring import Ring

LAYOUTS: dict[str, type[Layout]] = {
    "disc": Disc,
    "hexagonal": Hexagonal,
    "ring": Ring,
    "file": FileLayout,
}
"""Layouts by name."""

__all__ = ["LAYOUTS", "Disc", "FileLayout", "Hexagonal", "Layout", "Positions", "Ring"]
