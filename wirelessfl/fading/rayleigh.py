"""Rayleigh fading."""

from __future__ import annotations

from dataclasses import dataclass

import channels
from wirelessfl.fading.base import FadingModel


@dataclass(frozen=True)
class Rayleigh(FadingModel):
    """Rayleigh block fading: no line-of-sight path."""

    def build(self) -> channels.Fading:
        """Create ``channels.Rayleigh``."""
        return channels.Rayleigh()
