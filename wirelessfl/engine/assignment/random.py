"""Random assignment of clients to tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.engine.assignment.assignment_rule import AssignmentRule, State, checked_round, split


@dataclass(frozen=True)
class Random(AssignmentRule):
    """Uniformly random disjoint sets of clients (Sync-ST: Bhuyan, Moharir and Joshi, 2023)."""

    def begin(self, clients: int, tasks: int, stream: Stream) -> RandomAssignment:
        """Create an assignment that ignores earlier rounds."""
        return RandomAssignment(stream)


@dataclass(frozen=True)
class RandomAssignment:
    """Uniformly random disjoint sets of clients (Sync-ST: Bhuyan, Moharir, Joshi, 2023).

    Args:
        stream: random stream, one event per round.
    """

    stream: Stream
    wants_losses: ClassVar[bool] = False

    def choose(self, number: int, available: IntArray, shares: IntArray) -> list[IntArray]:
        """Draw disjoint sets of ``shares`` clients uniformly."""
        clients, sizes = checked_round(available, shares)
        order = self.stream.generator(number).permutation(clients)
        return split(order, sizes)

    def learn(
        self,
        chosen: list[IntArray],
        seconds: list[FloatArray],
        losses: list[FloatArray] | None = None,
    ) -> None:
        """Do nothing: random sets do not depend on earlier rounds."""

    def state(self) -> State:
        """The empty state."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Do nothing: there is no state."""
