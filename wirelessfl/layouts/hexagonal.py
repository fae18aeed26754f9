"""Hexagonal cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

import channels.layouts
from wirelessfl.layouts.base import Placed


@dataclass(frozen=True)
class Hexagonal(Placed):
    """Edge servers on a hexagonal grid, and uniformly distributed clients.

    Args:
        inter_site_distance_m: distance of neighbouring edge servers in metres.
    """

    inter_site_distance_m: Annotated[
        float, Field(ge=1, le=100_000, description="distance of neighbouring edge servers, m")
    ] = 500.0

    def build(self) -> channels.layouts.Layout:
        """See ``Placed``."""
        return channels.layouts.Hexagonal(self.inter_site_distance_m)
