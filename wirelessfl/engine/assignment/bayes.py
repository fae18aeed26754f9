"""Assignment by Bayesian optimisation, which learns the duration of rounds."""

from __future__ import annotations

import math
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

# Rounds with random assignments before the first fit.
_WARM_UP = 3


@dataclass(frozen=True)
class Bayes(AssignmentRule):
    """Short and fair rounds by Bayesian optimisation (Zhou et al., AAAI 2022)."""

    name = "bayes"

    fairness: Annotated[
        float,
        Field(ge=0, description="cost per unit of participation variance, in mean rounds"),
    ] = 1.0
    candidates: Annotated[
        int, Field(ge=1, description="random candidate assignments per round; the best is used")
    ] = 100

    def begin(self, clients: int, tasks: int, stream: Stream) -> BayesAssignment:
        """Create an assignment that maximises the expected improvement over candidates."""
        return BayesAssignment(
            stream,
            clients=clients,
            tasks=tasks,
            fairness=self.fairness,
            candidates=self.candidates,
        )


class BayesAssignment:
    """Assignments for short and fair rounds (Sync-Bayes-ST; BODS: Zhou et al., AAAI 2022).

    The cost of an assignment is the duration of the round over the mean duration in the history,
    plus beta times the participation variance: the variance over clients of how often each client
    has trained a task, summed over tasks. Each round draws random assignments and uses the one with
    the largest expected improvement over the minimum cost in the history. The history's costs are
    posterior means of the model, because observed durations are noisy.

    The following is this package's choice. All tasks are assigned together, since they wait for
    each other. A Gaussian process (Matern 5/2) models only the duration, as the variance is known
    exactly. Its features are two numbers per task, not the full clients x tasks assignment: the
    mean and the maximum of the clients' mean durations. Clients that have not trained a task yet
    have the task's mean duration. A round costs O(candidates clients + history^3). The cost
    contains only the increase of the variance by the assignment: the rest is equal for all
    candidates, and costs of distant rounds stay comparable.

    Args:
        stream: random stream of the candidates, one event per round.
        clients: number of all clients, >= 1.
        tasks: number of all tasks, >= 1.
        fairness: beta >= 0, cost per unit of variance, in mean rounds.
        candidates: random assignments per round, >= 1.
        history: number of latest rounds that the model uses, >= 3.
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
        self._seconds = np.zeros((tasks, clients))  # sum over the rounds of a client
        self._times = np.zeros((tasks, clients))  # how often a client trained a task
        self._features = np.zeros((0, 2 * tasks))  # rounds of the history, oldest first
        self._round_seconds = np.zeros(0)
        self._rises = np.zeros(0)

    def choose(self, number: int, available: IntArray, shares: IntArray) -> list[IntArray]:
        """Choose the candidate with the largest expected improvement; first rounds are random."""
        tasks, clients = self._times.shape
        pool_sorted, sizes = checked_round(available, shares, clients, tasks)
        generator = self._stream.generator(number)
        early = len(self._round_seconds) < _WARM_UP
        pool = np.tile(pool_sorted, (1 if early else self._candidates, 1))
        orders = generator.permuted(pool, axis=1)[:, : sizes.sum()]
        if early:
            return split(orders[0], sizes)
        # Imported on use: scikit-learn takes a second to import, and other runs do not need it.

        features, rises = self._features_and_rises(orders, sizes)
        relative = self._round_seconds / (self._round_seconds.mean() or 1.0)
        asked = np.concatenate([self._features, features])
        mean, deviation = posterior(self._features, relative, asked)
        cost = mean + self._fairness * np.concatenate([self._rises, rises])
        past = len(relative)
        gain = expected_improvement(cost[past:], deviation[past:], cost[:past].min())
        # If no improvement is expected, all gains are 0 and the lowest cost wins.
        return split(orders[np.lexsort((cost[past:], -gain))[0]], sizes)

    def learn(
        self,
        chosen: list[IntArray],
        seconds: list[FloatArray],
        losses: list[FloatArray] | None = None,
    ) -> None:
        """Store the duration of each client and of the round."""
        durations = checked_values("seconds", chosen, seconds, min_value=0.0)
        sizes = np.array([len(clients) for clients in chosen])
        if sizes.any():
            features, rises = self._features_and_rises(np.concatenate(chosen)[None], sizes)
            slowest = np.concatenate(durations).max(keepdims=True)
            keep = slice(-self._history, None)
            self._features = np.concatenate([self._features, features])[keep]
            self._round_seconds = np.concatenate([self._round_seconds, slowest])[keep]
            self._rises = np.concatenate([self._rises, rises])[keep]
        for task, (clients, values) in enumerate(zip(chosen, durations, strict=True)):
            self._seconds[task, clients] += values
            self._times[task, clients] += 1

    def _features_and_rises(
        self, orders: IntArray, sizes: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Features [k, 2 tasks] of k assignments [k, sum of sizes], and variance increases [k]."""
        expected, clients = self._expected_seconds(), self._times.shape[1]
        features, rises = np.zeros((len(orders), 2 * len(sizes))), np.zeros(len(orders))
        for task, end in enumerate(np.cumsum(sizes)):
            if not sizes[task]:
                continue
            members = orders[:, end - sizes[task] : end]
            values, times = expected[task, members], self._times[task]
            features[:, 2 * task] = values.mean(1)
            features[:, 2 * task + 1] = values.max(1)
            # Increase of the mean square minus that of the squared mean.
            share = sizes[task] / clients
            rises += (2 * times[members] + 1).sum(1) / clients - share * (2 * times.mean() + share)
        return features, rises

    def _expected_seconds(self) -> FloatArray:
        """Mean durations [tasks, clients]; the task's mean for clients that have not trained it."""
        looks, sums = self._times.sum(1), self._seconds.sum(1)
        unseen = np.where(looks > 0, sums, 0.0) / np.maximum(looks, 1)
        means = self._seconds / np.maximum(self._times, 1)
        return np.where(self._times > 0, means, unseen[:, None])

    def state(self) -> State:
        """Summed durations, participation counts, and the history."""
        return {
            "seconds": self._seconds.copy(),
            "times": self._times.copy(),
            "features": self._features.copy(),
            "round_seconds": self._round_seconds.copy(),
            "rises": self._rises.copy(),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state from the result of :meth:`state`."""
        check_state(state, ("seconds", "times"), self._times.shape)
        self._seconds = np.array(state["seconds"], dtype=np.float64)
        self._times = np.array(state["times"], dtype=np.float64)
        self._features = np.array(state["features"], dtype=np.float64)
        self._round_seconds = np.array(state["round_seconds"], dtype=np.float64)
        self._rises = np.array(state["rises"], dtype=np.float64)


# Length scales for standardised features, in units of sqrt(features), and noise variances relative
# to the variance of the values. A grid of 12 has no local optima and cannot fail to converge.
_LENGTHS = (0.5, 1.0, 2.0, 5.0)
_NOISES = (0.01, 0.1, 0.5)


def posterior(
    seen: FloatArray, values: FloatArray, asked: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Posterior of the noise-free value at ``asked``, given ``values`` at ``seen``.

    The covariance is Matern 5/2; its length scale and noise variance maximise the likelihood over a
    grid. Features are standardised. The prior has the mean and variance of the sample.

    Args:
        seen: [points, features], at least one point.
        values: [points].
        asked: [queries, features].

    Returns:
        Posterior mean and standard deviation, [queries] each.
    """
    # Every command imports this module; importing scikit-learn takes a second.
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    centre, spread = seen.mean(0), seen.std(0)
    spread = np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)
    x, z = (seen - centre) / spread, (asked - centre) / spread
    level, scale = values.mean(), values.std() or 1.0
    y = (values - level) / scale
    fits = [
        GaussianProcessRegressor(
            (1 - noise) * Matern(length * math.sqrt(x.shape[1]), nu=2.5),
            alpha=noise,
            optimizer=None,
        ).fit(x, y)
        for length in _LENGTHS
        for noise in _NOISES
    ]
    likeliest = max(fits, key=lambda fit: fit.log_marginal_likelihood_value_)
    mean, deviation = likeliest.predict(z, return_std=True)
    return level + scale * mean, scale * deviation


def expected_improvement(mean: FloatArray, deviation: FloatArray, best: float) -> FloatArray:
    """E max(best - X, 0) [queries] for normal X with ``mean`` and ``deviation`` >= 0."""
    from scipy.special import ndtr  # SciPy loads slowly

    gap = best - mean
    z = gap / np.maximum(deviation, 1e-300)
    density = np.exp(-0.5 * np.minimum(np.abs(z), 1e100) ** 2) / math.sqrt(2 * math.pi)
    certain = np.maximum(gap, 0.0)
    return np.where(deviation > 0, gap * ndtr(z) + deviation * density, certain)
