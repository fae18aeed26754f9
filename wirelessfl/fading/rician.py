"""Rician fading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

import channels
from wirelessfl.fading.base import FadingModel


@dataclass(frozen=True)
class Rician(FadingModel):
    """Rician block fading: a line-of-sight path and scattered paths.

    Args:
        rician_k_db: power of the line-of-sight path over that of the scattered paths, in dB.
    """

    rician_k_db: Annotated[float, Field(ge=-100, le=100, description="Rician K factor, dB")] = 6.0

    def build(self) -> channels.Fading:
        """Create ``channels.Rician``."""
        return channels.Rician(self.rician_k_db)
