"""Warm starts of sessions, one per file. Files in this folder are discovered automatically."""

from __future__ import annotations

from wirelessfl.algorithms.warm_starts.warm_start import Initial, Opening, WarmStart
from wirelessfl.base.needs import SESSIONS
from wirelessfl.base.registry import Kind

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
