"""Uplinks, one per file. Files in this folder are discovered automatically."""

from __future__ import annotations

from wirelessfl.registry import Kind
from wirelessfl.uplinks.conditions import AT_ANY_TIME, AT_ONE_TIME, DELIVERS
from wirelessfl.uplinks.uplink import AirRound, Reception, Uplink

UPLINKS: Kind[Uplink] = Kind(
    "uplink",
    __name__,
    Uplink,
    default="tdma",
    table=(DELIVERS, AT_ONE_TIME, AT_ANY_TIME),
    text="multiple access of the uplink",
    heading="uplink",
)
"""All uplinks: how updates cross the air."""

__all__ = ["UPLINKS", "AirRound", "Reception", "Uplink"]
