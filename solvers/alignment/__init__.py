"""Weighted sums over the air: who sends how strongly, and how the receiver combines."""

from solvers.alignment.align import Alignment, align_transmitters

__all__ = ["Alignment", "align_transmitters"]
