"""Warm starts of sessions, one a file; a file put here is found by being here."""

from __future__ import annotations

from wirelessfl.registry import Kind
from wirelessfl.warm_starts.base import WarmStart

WARM_STARTS: Kind[WarmStart] = Kind("warm_start", __name__, WarmStart)
"""What sessions can begin with."""

__all__ = ["WARM_STARTS", "WarmStart"]
