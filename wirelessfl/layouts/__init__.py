"""Layouts as settings: where cells and clients are. One per file, discovered automatically."""

from wirelessfl.layouts.base import LayoutModel
from wirelessfl.needs import DRAWN, RADIO
from wirelessfl.registry import Kind

LAYOUTS: Kind[LayoutModel] = Kind(
    "layout", __name__, LayoutModel, default="section-vi-c", needs=(*RADIO, DRAWN)
)
"""All layouts."""

__all__ = ["LAYOUTS", "LayoutModel"]
