"""Fixed signal-to-noise ratios instead of positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wirelessfl.layouts.base import LayoutModel


@dataclass(frozen=True)
class SectionVIC(LayoutModel):
    """No positions: the SNRs of Section VI-C of the HIST paper, or snr_db and path_gain_db."""

    positions: ClassVar[bool] = False

    def build(self) -> None:
        """See ``LayoutModel``."""
