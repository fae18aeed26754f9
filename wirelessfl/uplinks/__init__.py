"""Uplinks, one a file; a file put here is found by being here."""

from __future__ import annotations

from wirelessfl.registry import Kind
from wirelessfl.uplinks.base import AirRound, Reception, Uplink

UPLINKS: Kind[Uplink] = Kind("uplink", __name__, Uplink)
"""How updates can cross the air."""

__all__ = ["UPLINKS", "AirRound", "Reception", "Uplink"]
