"""Assignments of clients to tasks at random, or by a bandit whose rewards are local losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.base.guard import check_count, check_number
from wirelessfl.engine.assignment.assignment_rule import (
    AssignmentRule,
    State,
    check_state,
    checked_round,
    checked_values,
    split,
)


@dataclass(frozen=True)
class Random(AssignmentRule):
    """Uniformly random disjoint sets of clients (Sync-ST: Bhuyan, Moharir and Joshi, 2023)."""

    name = "random"

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


# Discounted number of observations below which a pair counts as unseen: sums would underflow.
_FORGOTTEN = 1e-100


@dataclass(frozen=True)
class Bandit(AssignmentRule):
    """Prefers clients with high or uncertain local losses (Bhuyan and Moharir, COMSNETS 2022)."""

    name = "bandit"

    discount: Annotated[
        float, Field(gt=0, le=1, description="discount factor of past losses, per round")
    ] = 0.9
    exploration: Annotated[
        float, Field(ge=0, description="c of the exploration bonus (c log t / n)^(1/2)")
    ] = 0.1

    def begin(self, clients: int, tasks: int, stream: Stream) -> BanditAssignment:
        """Create an assignment by upper confidence bounds of local losses."""
        return BanditAssignment(
            stream,
            clients=clients,
            tasks=tasks,
            discount=self.discount,
            exploration=self.exploration,
        )


class BanditAssignment:
    """Upper confidence bounds of local losses (Sync-UCB-ST: Bhuyan and Moharir, COMSNETS 2022).

    The index of client i for task m is L / n + sqrt(c log t / n). L is the sum of the observed
    losses, n the number of observations, and t the number of rounds; observations and rounds from s
    rounds ago count with weight gamma^s. Pairs (task, client) are assigned in order of decreasing
    index. Each client is assigned at most once, and each task gets at most its share. Pairs without
    an observation come first. Ties are broken at random.

    The discount is this package's choice, because losses fall during training. So is the form of
    the index, which follows discounted UCB for client selection (Cho et al., 2020). Losses of
    different tasks are compared without scaling.

    Args:
        stream: random stream for ties, one event per round.
        clients: number of all clients, >= 1.
        tasks: number of all tasks, >= 1.
        exploration: c >= 0, in units of a squared loss.
        discount: gamma in (0, 1].
    """

    wants_losses: ClassVar[bool] = True

    def __init__(
        self,
        stream: Stream,
        *,
        clients: int,
        tasks: int,
        exploration: float = 0.1,
        discount: float = 0.9,
    ) -> None:
        check_count("clients", clients)
        check_count("tasks", tasks)
        check_number("exploration", exploration)
        if not 0 < discount <= 1:
            raise ValueError(f"discount is {discount}: give a number > 0 and <= 1.")
        self._stream, self._exploration, self._discount = stream, exploration, discount
        self._losses = np.zeros((tasks, clients))
        self._looks = np.zeros((tasks, clients))
        self._rounds = 0.0

    def choose(self, number: int, available: IntArray, shares: IntArray) -> list[IntArray]:
        """Choose pairs in order of decreasing index, with at most one pair per client."""
        tasks, clients = self._looks.shape
        them, sizes = checked_round(available, shares, clients, tasks)
        index = self.indices()[:, them].reshape(-1)
        shuffle = self._stream.generator(number).permutation(index.size)
        order = shuffle[np.argsort(-index[shuffle], kind="stable")]
        picks: list[list[int]] = [[] for _ in range(tasks)]
        taken, open_ = np.zeros(len(them), dtype=np.bool_), sizes.copy()
        for task, row in zip(*(x.tolist() for x in np.divmod(order, len(them))), strict=True):
            if open_[task] and not taken[row]:
                picks[task].append(row)
                taken[row] = True
                open_[task] -= 1
                if not open_.any():
                    break
        return [them[np.sort(np.array(rows, dtype=np.int64))] for rows in picks]

    def indices(self) -> FloatArray:
        """Index of each pair [tasks, clients]; infinite for pairs without an observation."""
        seen = self._looks > _FORGOTTEN
        looks = np.where(seen, self._looks, 1.0)
        bonus = np.sqrt(self._exploration * np.log(max(self._rounds, 1.0)) / looks)
        return np.where(seen, self._losses / looks + bonus, np.inf)

    def learn(
        self,
        chosen: list[IntArray],
        seconds: list[FloatArray],
        losses: list[FloatArray] | None = None,
    ) -> None:
        """Discount earlier observations, and add the losses of the chosen clients."""
        observed = checked_values("losses", chosen, losses, min_value=-np.inf)
        self._losses *= self._discount
        self._looks *= self._discount
        self._rounds = self._discount * self._rounds + 1
        for task, (clients, values) in enumerate(zip(chosen, observed, strict=True)):
            self._losses[task, clients] += values
            self._looks[task, clients] += 1

    def state(self) -> State:
        """Discounted sums of losses, observations and rounds."""
        return {
            "losses": self._losses.copy(),
            "looks": self._looks.copy(),
            "rounds": np.array([self._rounds]),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state from the result of :meth:`state`."""
        check_state(state, ("losses", "looks"), self._looks.shape)
        self._losses = np.array(state["losses"], dtype=np.float64)
        self._looks = np.array(state["looks"], dtype=np.float64)
        self._rounds = float(state["rounds"][0])
