"""Bayesian optimisation of the assignment: try schedules, and learn how long they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.assignment.base import AssignmentRule, State, checked_round, checked_values, split
from wirelessfl.numbers import check_count, check_number

# Rounds of random schedules before there is something to fit.
_WARM_UP = 3


@dataclass(frozen=True)
class Bayes(AssignmentRule):
    """Short and fair rounds by Bayesian optimisation (Zhou et al., AAAI 2022).

    Args:
        fairness: cost of a unit of variance of how often clients took part, in mean rounds.
        candidates: random assignments of a round among which the most promising is taken.
    """

    fairness: Annotated[
        float,
        Field(ge=0, description="cost of a unit of variance of participation, in mean rounds"),
    ] = 1.0
    candidates: Annotated[
        int, Field(ge=1, description="random assignments per round of which the best is taken")
    ] = 100

    def begin(self, clients: int, tasks: int, stream: Stream) -> BayesAssignment:
        """The candidate of the largest expected improvement."""
        return BayesAssignment(
            stream,
            clients=clients,
            tasks=tasks,
            fairness=self.fairness,
            candidates=self.candidates,
        )


class BayesAssignment:
    """Schedules that promise short and fair rounds (Sync-Bayes-ST; BODS: Zhou et al., AAAI 2022).

    The cost of a schedule is the round's seconds over their mean in the history, plus beta times
    the sum over tasks of the variance over clients of how often each has trained the task. Among
    random schedules the one of the largest expected improvement is taken, over the least cost that
    the model, which knows of noise, gives a round of the history.

    Where this package chose: all tasks are scheduled at once, since they wait for each other. A
    Gaussian process (Matern 5/2) models the seconds alone, as the variance is known. Its features
    are not the schedules, whose length is clients times tasks, but two numbers a task: mean and
    largest of its clients' mean seconds so far (a client not seen at this task counts as the task's
    mean). So a round costs O(candidates clients + history^3) however many clients there are. The
    variance is counted as its rise by the schedule, since all schedules of a round share the rest,
    and rounds far apart stay comparable.

    Args:
        stream: randomness of the candidates, an event a round.
        clients: of all, >= 1.
        tasks: of all, >= 1.
        fairness: beta >= 0, what a unit of variance costs, in mean rounds.
        candidates: random schedules a round, >= 1.
        history: last rounds that are remembered, >= 3.

    Raises:
        ValueError: an argument is out of its range.
    """

    wants_losses: ClassVar[bool] = False

    def __init__(
        self,
        stream: Stream,
        *,
        clients: int,
        tasks: int,
        fairness: float = 1.0,
        candidates: int = 100,
        history: int = 50,
    ) -> None:
        check_count("clients", clients)
        check_count("tasks", tasks)
        check_number("fairness", fairness)
        check_count("candidates", candidates)
        check_count("history", history, min_value=_WARM_UP)
        self._stream, self._fairness = stream, fairness
        self._candidates, self._history = candidates, history
        self._seconds = np.zeros((tasks, clients))  # sums
        self._times = np.zeros((tasks, clients))  # that a client trained a task
        self._features = np.zeros((0, 2 * tasks))  # of the rounds in the history, oldest first
        self._round_seconds = np.zeros(0)
        self._rises = np.zeros(0)

    def choose(self, number: int, available: IntArray, shares: IntArray) -> list[IntArray]:
        """The candidate of largest expected improvement; in the first rounds a random one."""
        tasks, clients = self._times.shape
        them, sizes = checked_round(available, shares, clients, tasks)
        generator = self._stream.generator(number)
        early = len(self._round_seconds) < _WARM_UP
        pool = np.tile(them, (1 if early else self._candidates, 1))
        orders = generator.permuted(pool, axis=1)[:, : sizes.sum()]
        if early:
            return split(orders[0], sizes)
        # Other runs do without scikit-learn, whose import takes a second.
        from wirelessfl.assignment.gaussian_process import expected_improvement, posterior

        features, rises = self._look(orders, sizes)
        relative = self._round_seconds / (self._round_seconds.mean() or 1.0)
        asked = np.concatenate([self._features, features])
        mean, deviation = posterior(self._features, relative, asked)
        cost = mean + self._fairness * np.concatenate([self._rises, rises])
        past = len(relative)
        gain = expected_improvement(cost[past:], deviation[past:], cost[:past].min())
        # Where no candidate promises anything, the gains are equally zero, and the cost decides.
        return split(orders[np.lexsort((cost[past:], -gain))[0]], sizes)

    def learn(
        self,
        chosen: list[IntArray],
        seconds: list[FloatArray],
        losses: list[FloatArray] | None = None,
    ) -> None:
        """How long each client took, and with them the round."""
        found = checked_values("seconds", chosen, seconds, min_value=0.0)
        sizes = np.array([len(clients) for clients in chosen])
        if sizes.any():
            features, rises = self._look(np.concatenate(chosen)[None], sizes)
            slowest = np.concatenate(found).max(keepdims=True)
            keep = slice(-self._history, None)
            self._features = np.concatenate([self._features, features])[keep]
            self._round_seconds = np.concatenate([self._round_seconds, slowest])[keep]
            self._rises = np.concatenate([self._rises, rises])[keep]
        for task, (clients, values) in enumerate(zip(chosen, found, strict=True)):
            self._seconds[task, clients] += values
            self._times[task, clients] += 1

    def _look(self, orders: IntArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Features [schedules, 2 tasks] of schedules [schedules, sum of sizes], and their rises."""
        expected, clients = self._expected_seconds(), self._times.shape[1]
        features, rises = np.zeros((len(orders), 2 * len(sizes))), np.zeros(len(orders))
        for task, end in enumerate(np.cumsum(sizes)):
            if not sizes[task]:
                continue
            those = orders[:, end - sizes[task] : end]
            values, times = expected[task, those], self._times[task]
            features[:, 2 * task] = values.mean(1)
            features[:, 2 * task + 1] = values.max(1)
            # Rise of the mean square, less that of the squared mean.
            share = sizes[task] / clients
            rises += (2 * times[those] + 1).sum(1) / clients - share * (2 * times.mean() + share)
        return features, rises

    def _expected_seconds(self) -> FloatArray:
        """Mean seconds so far [tasks, clients]; the task's mean for those not seen."""
        looks, sums = self._times.sum(1), self._seconds.sum(1)
        unseen = np.where(looks > 0, sums, 0.0) / np.maximum(looks, 1)
        means = self._seconds / np.maximum(self._times, 1)
        return np.where(self._times > 0, means, unseen[:, None])

    def state(self) -> State:
        """Sums of seconds and times trained, and the history."""
        return {
            "seconds": self._seconds.copy(),
            "times": self._times.copy(),
            "features": self._features.copy(),
            "round_seconds": self._round_seconds.copy(),
            "rises": self._rises.copy(),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from :meth:`state`.

        Raises:
            ValueError: it is of other numbers of clients or tasks.
        """
        for name in ("seconds", "times"):
            if state[name].shape != self._times.shape:
                raise ValueError(
                    f"{name} has shape {state[name].shape}: the state is of another run, here "
                    f"{self._times.shape}."
                )
        self._seconds = np.array(state["seconds"], dtype=np.float64)
        self._times = np.array(state["times"], dtype=np.float64)
        self._features = np.array(state["features"], dtype=np.float64)
        self._round_seconds = np.array(state["round_seconds"], dtype=np.float64)
        self._rises = np.array(state["rises"], dtype=np.float64)
