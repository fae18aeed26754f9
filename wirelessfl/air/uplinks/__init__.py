"""Uplinks, one per file. Files in this folder are discovered automatically."""

from __future__ import annotations

from wirelessfl.air.uplinks.uplink import (
    AT_ANY_TIME,
    AT_ONE_TIME,
    DELIVERS,
    Reception,
    Transmission,
    Uplink,
)
from wirelessfl.base.registry import Kind

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

__all__ = ["UPLINKS", "Reception", "Transmission", "Uplink"]
