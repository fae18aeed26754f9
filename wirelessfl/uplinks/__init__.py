"""Uplinks, one per file. Files in this folder are discovered automatically."""

from __future__ import annotations

from wirelessfl.registry import Kind
from wirelessfl.uplinks.uplink import AirRound, Reception, Uplink

UPLINKS: Kind[Uplink] = Kind(
    "uplink",
    __name__,
    Uplink,
    default="tdma",
    text="multiple access of the uplink",
    heading="uplink",
)
"""All uplinks: how updates cross the air."""

__all__ = ["UPLINKS", "AirRound", "Reception", "Uplink"]
