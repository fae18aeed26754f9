"""Frequency division: the clients of a cell upload together, each in its own sub-band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from channels import Access, EqualBands
from solvers import OptimalBands
from wirelessfl.uplinks.base import Uplink


@dataclass(frozen=True)
class Ofdma(Uplink):
    """Frequency division: each client concentrates its power in its part of the band.

    Args:
        allocation: with "equal", each of n_j clients in a cell has 1/n_j of the band (HIST paper,
            footnote 2). With "optimal", bands minimise when the cell's last update arrives, see
            ``solvers.allocate_bandwidth``.
    """

    name = "ofdma"

    allocation: Annotated[
        Literal["equal", "optimal"],
        Field(description="bands of a cell's clients: equal, or so that the last one ends soonest"),
    ] = "equal"

    @property
    def access(self) -> Access:
        """``channels.EqualBands`` or ``solvers.OptimalBands``."""
        return EqualBands() if self.allocation == "equal" else OptimalBands()
