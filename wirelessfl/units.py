"""Transmitted size of a number."""

from __future__ import annotations

BITS_PER_ELEMENT = 32
"""Bits per element (one number), in digital and analog transmission."""
MIB_PER_ELEMENT = BITS_PER_ELEMENT / 8 / 2**20
"""MiB per element."""
