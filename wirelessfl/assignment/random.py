"""Assignment of clients to tasks at random, which learns nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.assignment.base import AssignmentRule, State, checked_round, split


@dataclass(frozen=True)
class Random(AssignmentRule):
    """Disjoint sets drawn evenly at random (Sync-ST: Bhuyan, Moharir and Joshi, 2023)."""

    def begin(self, clients: int, tasks: int, stream: Stream) -> RandomAssignment:
        """Random sets, whatever happened before."""
        return RandomAssignment(stream)


@dataclass(frozen=True)
class RandomAssignment:
    """Sets drawn evenly at random (Sync-ST: Bhuyan, Moharir, Joshi, 2023).

    Args:
        stream: randomness, an event a round.
    """

    stream: Stream
    wants_losses: ClassVar[bool] = False

    def choose(self, number: int, available: IntArray, shares: IntArray) -> list[IntArray]:
        """Any disjoint sets of these sizes are equally likely."""
        clients, sizes = checked_round(available, shares)
        order = self.stream.generator(number).permutation(clients)
        return split(order, sizes)

    def learn(
        self,
        chosen: list[IntArray],
        seconds: list[FloatArray],
        losses: list[FloatArray] | None = None,
    ) -> None:
        """Nothing."""

    def state(self) -> State:
        """Nothing."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Nothing."""
