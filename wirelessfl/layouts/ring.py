"""Clients at one distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

import channels.layouts
from wirelessfl.layouts.base import Placed


@dataclass(frozen=True)
class Ring(Placed):
    """All clients of a cell at the same distance from its edge server.

    Args:
        distance_m: distance of each client to its edge server in metres.
    """

    distance_m: Annotated[
        float, Field(ge=1, le=100_000, description="distance of each client to its edge server, m")
    ] = 100.0

    def build(self) -> channels.layouts.Layout:
        """See ``Placed``."""
        return channels.layouts.Ring(self.distance_m)
