"""Log-distance path loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

import channels.path_loss
from wirelessfl.path_loss.base import PathLossModel


@dataclass(frozen=True)
class LogDistance(PathLossModel):
    """Log-distance: reference_db + 10 exponent log10(distance / reference_m) dB.

    Args:
        exponent: path-loss exponent; 2 in free space.
        reference_db: loss at ``reference_m``, in dB.
        reference_m: reference distance in metres.
        shadowing_db: standard deviation of shadowing in dB.
    """

    exponent: Annotated[float, Field(ge=1, le=10, description="path-loss exponent")] = 3.76
    reference_db: Annotated[
        float, Field(ge=0, le=200, description="path loss at the reference distance, dB")
    ] = 15.3
    reference_m: Annotated[float, Field(gt=0, description="reference distance, m")] = 1.0
    shadowing_db: Annotated[
        float, Field(ge=0, le=30, description="standard deviation of shadowing, dB")
    ] = 8.0

    def build(self) -> channels.path_loss.PathLoss:
        """See ``PathLossModel``."""
        return channels.path_loss.LogDistance(
            exponent=self.exponent,
            reference_db=self.reference_db,
            reference_m=self.reference_m,
            shadowing_db=self.shadowing_db,
        )
