"""Sync-UCB-ST: Sync-ST with assignments by a bandit (Bhuyan and Moharir, COMSNETS 2022)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from channels.streams import Stream
from wirelessfl.algorithms.sync_st import SyncST
from wirelessfl.algorithms.timing import Timing
from wirelessfl.assignment import Assignment, BanditAssignment


@dataclass(frozen=True)
class SyncUCBST(SyncST):
    """Sync-ST that goes where local losses are high, or not known well, see ``BanditAssignment``.

    Args:
        discount: of losses seen a round earlier.
        exploration: c of the bonus (c log t / n)^(1/2).
    """

    name = "sync-ucb-st"

    discount: Annotated[
        float, Field(gt=0, le=1, description="weight of losses seen a round earlier")
    ] = 0.9
    exploration: Annotated[
        float, Field(ge=0, description="c of the bonus of what is not known well")
    ] = 0.1

    @property
    def timing(self) -> Timing:
        """Those of Sync-ST, by another assignment."""
        timing = super().timing
        return replace(timing, shared=(*timing.shared, "discount", "exploration"))

    def assignment(self, clients: int, tasks: int, stream: Stream) -> Assignment:
        """Who trains what: the highest upper confidence bounds on local losses."""
        return BanditAssignment(
            stream,
            clients=clients,
            tasks=tasks,
            discount=self.discount,
            exploration=self.exploration,
        )
