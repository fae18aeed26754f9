"""What numbers count as when they are sent."""

from __future__ import annotations

BITS_PER_ELEMENT = 32
"""Bits of a number, whether it crosses the air in bits or as it is."""
MIB_PER_ELEMENT = BITS_PER_ELEMENT / 8 / 2**20
"""MiB of a number."""
