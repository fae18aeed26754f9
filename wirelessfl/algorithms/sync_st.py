"""Sync-ST: rounds of several tasks on disjoint random clients (Bhuyan, Moharir and Joshi, 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from channels.streams import Stream
from wirelessfl.algorithms.task_rule import TaskRule
from wirelessfl.algorithms.timing import CommonRounds, Timing
from wirelessfl.assignment import Assignment, RandomAssignment


@dataclass(frozen=True)
class SyncST(TaskRule):
    """FedAvg for each task at once; a round ends when every task has what it waits for.

    Args:
        first: k, updates of a task that are awaited in a round, the rest being dropped (Bonawitz et
            al., 2019; k = 30 in the FedAST paper); 0 waits for all.
    """

    name = "sync-st"

    first: Annotated[
        int, Field(ge=0, description="k, updates of a task awaited in a round; 0: all of them")
    ] = 30

    @property
    def timing(self) -> Timing:
        """Rounds with a common end."""
        return Timing(
            common_rounds=CommonRounds(self.first, self.assignment),
            max_tasks=None,
            shared=("first",),
        )

    def assignment(self, clients: int, tasks: int, stream: Stream) -> Assignment:
        """Who trains what: uniformly random disjoint sets."""
        return RandomAssignment(stream)
