"""Clients for tasks as arms of a bandit: whose loss is high is worth training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.assignment.base import AssignmentRule, State, checked_round, checked_values
from wirelessfl.numbers import check_count, check_number

# Below this many looks, discounted, what was seen is forgotten: sums would underflow.
_FORGOTTEN = 1e-100


@dataclass(frozen=True)
class Bandit(AssignmentRule):
    """Where local losses are high, or not known well (Bhuyan and Moharir, COMSNETS 2022).

    Args:
        discount: of losses seen a round earlier.
        exploration: c of the bonus (c log t / n)^(1/2).
    """

    discount: Annotated[
        float, Field(gt=0, le=1, description="discount of losses per round since they were seen")
    ] = 0.9
    exploration: Annotated[
        float, Field(ge=0, description="c of the exploration bonus (c log t / n)^(1/2)")
    ] = 0.1

    def begin(self, clients: int, tasks: int, stream: Stream) -> BanditAssignment:
        """The highest upper confidence bounds on local losses."""
        return BanditAssignment(
            stream,
            clients=clients,
            tasks=tasks,
            discount=self.discount,
            exploration=self.exploration,
        )


class BanditAssignment:
    """Upper confidence bounds of local losses (Sync-UCB-ST: Bhuyan and Moharir, COMSNETS 2022).

    The index of client i for task m is L / n + sqrt(c log t / n), where a round that lies s rounds
    back counts gamma^s: L is the sum of the losses seen, n the number of looks, t that of rounds.
    The highest index of all pairs is served first; a client is taken once, a task up to its share.
    Pairs never seen come before all others, in random order; so are ties broken.

    The discount and the form of the index, which follows discounted UCB for client selection (Cho
    et al., 2020), are this package's choice: losses fall during training. Losses of tasks are
    compared as they are.

    Args:
        stream: randomness of the order among equals, an event a round.
        clients: of all, >= 1.
        tasks: of all, >= 1.
        exploration: c >= 0, in squares of a loss.
        discount: gamma in (0, 1].

    Raises:
        ValueError: an argument is out of its range.
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
            raise ValueError(f"discount is {discount}: give a number above 0 and up to 1.")
        self._stream, self._exploration, self._discount = stream, exploration, discount
        self._losses = np.zeros((tasks, clients))
        self._looks = np.zeros((tasks, clients))
        self._rounds = 0.0

    def choose(self, number: int, available: IntArray, shares: IntArray) -> list[IntArray]:
        """The pairs of highest index, each client in at most one."""
        tasks, clients = self._looks.shape
        them, sizes = checked_round(available, shares, clients, tasks)
        index = self.indices()[:, them].reshape(-1)
        shuffle = self._stream.generator(number).permutation(index.size)
        order = shuffle[np.argsort(-index[shuffle], kind="stable")]
        picks: list[list[int]] = [[] for _ in range(tasks)]
        taken, open_ = np.zeros(len(them), dtype=np.bool_), sizes.copy()
        for task, place in zip(*(x.tolist() for x in np.divmod(order, len(them))), strict=True):
            if open_[task] and not taken[place]:
                picks[task].append(place)
                taken[place] = True
                open_[task] -= 1
                if not open_.any():
                    break
        return [them[np.sort(np.array(places, dtype=np.int64))] for places in picks]

    def indices(self) -> FloatArray:
        """Index of each pair [tasks, clients]; infinite where nothing was seen."""
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
        """Losses of the chosen; what was seen before counts less."""
        found = checked_values("losses", chosen, losses, min_value=-np.inf)
        self._losses *= self._discount
        self._looks *= self._discount
        self._rounds = self._discount * self._rounds + 1
        for task, (clients, values) in enumerate(zip(chosen, found, strict=True)):
            self._losses[task, clients] += values
            self._looks[task, clients] += 1

    def state(self) -> State:
        """Sums of losses, looks and rounds, discounted."""
        return {
            "losses": self._losses.copy(),
            "looks": self._looks.copy(),
            "rounds": np.array([self._rounds]),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from :meth:`state`.

        Raises:
            ValueError: it is of other numbers of clients or tasks.
        """
        for name in ("losses", "looks"):
            if state[name].shape != self._looks.shape:
                raise ValueError(
                    f"{name} has shape {state[name].shape}: the state is of another run, here "
                    f"{self._looks.shape}."
                )
        self._losses = np.array(state["losses"], dtype=np.float64)
        self._looks = np.array(state["looks"], dtype=np.float64)
        self._rounds = float(state["rounds"][0])
