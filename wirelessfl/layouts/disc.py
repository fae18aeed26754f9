"""Round cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

import channels.layouts
from wirelessfl.layouts.base import Placed


@dataclass(frozen=True)
class Disc(Placed):
    """Round cells with uniformly distributed clients.

    Args:
        radius_m: radius of a cell in metres.
    """

    radius_m: Annotated[float, Field(ge=1, le=100_000, description="radius of a cell, m")] = 500.0

    def build(self) -> channels.layouts.Layout:
        """See ``Placed``."""
        return channels.layouts.Disc(self.radius_m)
