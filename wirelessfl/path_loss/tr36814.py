"""The path loss of LTE studies."""

from __future__ import annotations

from dataclasses import dataclass

import channels.path_loss
from wirelessfl.path_loss.base import PathLossModel, Shadowing


@dataclass(frozen=True)
class Tr36814(PathLossModel):
    """3GPP TR 36.814, macro cells at 2 GHz: 128.1 + 37.6 log10(distance in km) dB.

    Args:
        shadowing_db: standard deviation of shadowing in dB; None for 8 dB.
    """

    shadowing_db: Shadowing = None

    def build(self) -> channels.path_loss.PathLoss:
        """See ``PathLossModel``."""
        model = channels.path_loss.Tr36814()
        return channels.path_loss.Variant(model, shadowing_db=self.shadowing_db)
