"""Fading models as settings, one per file, found by lying in this folder."""

from wirelessfl.fading.base import FadingModel
from wirelessfl.registry import Kind

FADINGS: Kind[FadingModel] = Kind("fading", __name__, FadingModel)
"""How channels can fade."""

__all__ = ["FADINGS", "FadingModel"]
