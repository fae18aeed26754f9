"""Round durations of FedAST (Askin et al., UAI 2024, Section 4); its bounds: ``fedast_bounds``.

Durations assume clients without queues whose delays are independent and exponential with rate
lambda. A synchronous server waits for the slowest client of all tasks, about log(sum R) / lambda
seconds; an asynchronous server waits only until a buffer is full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from wirelessfl.base.guard import check_count, check_number


def buffer_seconds(*, buffer: int, requests: int, rate_hz: float) -> float:
    """Expected seconds to fill a buffer, b / (R lambda) ("Impact of R_m on Wall-clock Time").

    Each of the R requests is reissued when it returns, so updates arrive at rate R lambda.

    Args:
        buffer: b >= 1, updates per server round.
        requests: R >= 1, active requests of the task.
        rate_hz: lambda > 0, rate of a request's exponential delay.
    """
    check_count("buffer", buffer)
    check_count("requests", requests)
    check_number("rate_hz", rate_hz, positive=True)
    return buffer / (requests * rate_hz)


def synchronous_round_seconds(*, requests: Sequence[int], rate_hz: float) -> float:
    """Expected seconds until all clients of all tasks have returned, (1 / lambda) sum_k 1 / k.

    The sum is over k = 1 ... R_1 + ... + R_M, because every task waits for the slowest client.

    Args:
        requests: R_m >= 0 [tasks], number of clients that train each task; at least one in total.
        rate_hz: lambda > 0, rate of a client's exponential delay.
    """
    for task, number in enumerate(requests):
        check_count(f"requests[{task}]", number, min_value=0)
    everyone = sum(requests)
    check_count("sum of requests", everyone)
    return arrival_seconds(arrival=everyone, requests=everyone, rate_hz=rate_hz)


def arrival_seconds(*, arrival: int, requests: int, rate_hz: float) -> float:
    """Expected seconds until the k-th of n clients returns, (1 / lambda) sum_{j=n-k+1}^{n} 1 / j.

    This is the duration of a synchronous round of one task that keeps the first k updates and drops
    the stragglers. While j clients are active, the next one returns after 1 / (j lambda) seconds on
    average (Renyi's representation of order statistics). A barrier over several such tasks takes
    longer on average than the longest of these means.

    Args:
        arrival: k, from 1 to n.
        requests: n >= 1, number of clients that train.
        rate_hz: lambda > 0, rate of a client's exponential delay.
    """
    check_count("arrival", arrival)
    check_count("requests", requests)
    check_number("rate_hz", rate_hz, positive=True)
    if arrival > requests:
        raise ValueError(
            f"arrival is {arrival} with requests={requests}: give a number from 1 to {requests}."
        )
    return math.fsum(1 / out for out in range(requests - arrival + 1, requests + 1)) / rate_hz


@dataclass(frozen=True)
class ShiftedExponential:
    """Seconds of local training: beta plus an exponential part of mean 2 beta.

    P(X <= x) = 1 - exp(-(x - beta) / (2 beta)) for x >= beta ("Modeling Client Delays").

    Args:
        shift_seconds: beta > 0.
    """

    shift_seconds: float

    def __post_init__(self) -> None:
        check_number("shift_seconds", self.shift_seconds, positive=True)

    @property
    def mean_seconds(self) -> float:
        """The mean, 3 beta."""
        return 3 * self.shift_seconds

    def cdf(self, seconds: ArrayLike) -> FloatArray:
        """P(X <= x) for x [...] seconds."""
        past = np.asarray(seconds, dtype=np.float64) - self.shift_seconds
        return np.asarray(-np.expm1(-np.maximum(past, 0.0) / (2 * self.shift_seconds)))

    def quantile(self, probability: ArrayLike) -> FloatArray:
        """Seconds x with P(X <= x) = ``probability`` [...], from 0 to 1; infinite at 1.

        Uniform random probabilities give draws of X.
        """
        values = np.asarray(probability, dtype=np.float64)
        wrong = ~((values >= 0) & (values <= 1))
        if wrong.any():
            raise ValueError(
                f"probability contains {values[wrong].flat[0]}: give numbers in [0, 1]."
            )
        with np.errstate(divide="ignore"):
            return np.asarray(self.shift_seconds * (1 - 2 * np.log1p(-values)))
