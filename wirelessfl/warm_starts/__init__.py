"""Warm starts of sessions, one per file. Files in this folder are discovered automatically."""

from __future__ import annotations

from wirelessfl.needs import SESSIONS
from wirelessfl.registry import Kind
from wirelessfl.warm_starts.warm_start import Initial, Opening, WarmStart

WARM_STARTS: Kind[WarmStart] = Kind(
    "warm_start",
    __name__,
    WarmStart,
    default="previous",
    needs=SESSIONS,
    text="initial model of a session",
    heading="sessions",
)
"""All warm starts: the initial model of a session."""

__all__ = ["WARM_STARTS", "Initial", "Opening", "WarmStart"]
