"""Sync-Bayes-ST: Sync-ST with assignments by Bayesian optimisation (Zhou et al., AAAI 2022)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from channels.streams import Stream
from wirelessfl.algorithms.sync_st import SyncST
from wirelessfl.algorithms.timing import Timing
from wirelessfl.assignment import Assignment, BayesAssignment


@dataclass(frozen=True)
class SyncBayesST(SyncST):
    """Sync-ST whose clients are chosen for short and fair rounds, see ``BayesAssignment``.

    Args:
        fairness: cost of a unit of variance of how often clients took part, in mean rounds.
        candidates: random assignments of a round among which the most promising is taken.
    """

    name = "sync-bayes-st"

    fairness: Annotated[
        float, Field(ge=0, description="cost of uneven participation, in mean rounds a variance")
    ] = 1.0
    candidates: Annotated[
        int, Field(ge=1, description="random assignments a round that are looked at")
    ] = 100

    @property
    def timing(self) -> Timing:
        """Those of Sync-ST, by another assignment."""
        timing = super().timing
        return replace(timing, shared=(*timing.shared, "fairness", "candidates"))

    def assignment(self, clients: int, tasks: int, stream: Stream) -> Assignment:
        """Who trains what: the candidate of the largest expected improvement."""
        return BayesAssignment(
            stream,
            clients=clients,
            tasks=tasks,
            fairness=self.fairness,
            candidates=self.candidates,
        )
