"""Fading models as settings, one per file, discovered automatically."""

from wirelessfl.fading.base import FadingModel
from wirelessfl.registry import Kind

FADINGS: Kind[FadingModel] = Kind("fading", __name__, FadingModel)
"""All fading models."""

__all__ = ["FADINGS", "FadingModel"]
