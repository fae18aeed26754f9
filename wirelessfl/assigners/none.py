"""No assigner: every client trains the full model."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.assigners.assigner import Assigner


@dataclass(frozen=True)
class NoAssigner(Assigner):
    """All cells and clients train the full model."""

    name = "none"
