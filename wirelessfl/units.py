"""Transmitted size of a number."""

from __future__ import annotations

from channels.loads import BITS_PER_ELEMENT as BITS_PER_ELEMENT

MIB_PER_ELEMENT = BITS_PER_ELEMENT / 8 / 2**20
"""MiB per element."""
