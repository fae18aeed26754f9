"""Fading models as settings, one per file, discovered automatically."""

from wirelessfl.fading.base import FadingModel
from wirelessfl.needs import DRAWN, RADIO
from wirelessfl.registry import Kind

FADINGS: Kind[FadingModel] = Kind(
    "fading", __name__, FadingModel, default="rayleigh", needs=(*RADIO, DRAWN)
)
"""All fading models."""

__all__ = ["FADINGS", "FadingModel"]
