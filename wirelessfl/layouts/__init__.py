"""Layouts as settings: where cells and clients are. One per file, discovered automatically."""

from wirelessfl.layouts.base import LayoutModel
from wirelessfl.registry import Kind

LAYOUTS: Kind[LayoutModel] = Kind("layout", __name__, LayoutModel)
"""All layouts."""

__all__ = ["LAYOUTS", "LayoutModel"]
