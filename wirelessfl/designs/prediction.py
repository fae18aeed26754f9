"""What the run of a design should take, by other draws of channels than those of the design."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.client_costs import ClientCosts
from wirelessfl.designs.choices import DesignChoice
from wirelessfl.designs.curve import RoundsCurve
from wirelessfl.designs.goals import SLACK, Curve, Goal
from wirelessfl.designs.sampled_rounds import Costs, SampledRounds


class Interval(NamedTuple):
    """A predicted number, with an interval of 90 %.

    Args:
        value: the prediction.
        low, high: ends of the interval; ``value`` if there is none.
    """

    value: float
    low: float
    high: float


class Dominant(NamedTuple):
    """One draw of channels that makes much of a mean over draws, and the client that causes it.

    Args:
        cost: "seconds" or "joules".
        sample: "the design" or "the evaluation", whose draws they are.
        draw: number of the draw in the sample, from 0.
        draws: number of draws.
        client: the client for which this round waits, and of several the one with the slowest
            upload.
        share: part of the mean that the draw alone adds to that of the others.
        value: mean cost of a global round.
        without: mean over the other draws.
    """

    cost: str
    sample: str
    draw: int
    draws: int
    client: int
    share: float
    value: float
    without: float

    def __str__(self) -> str:
        unit = "s" if self.cost == "seconds" else "J per client"
        return (
            f"one fade dominates the mean {self.cost} by the draws of {self.sample}: client "
            f"{self.client} in draw {self.draw} of {self.draws} makes {100 * self.share:.0f} % of "
            f"them ({self.value:.4g} {unit} per round; without this draw {self.without:.4g})."
        )


class Prediction(NamedTuple):
    """What the run of a design should take.

    Intervals cover the rounds to the target and the channels of these rounds.

    Args:
        rounds: global rounds.
        seconds: simulated seconds, by other draws of channels than those of the design: their
            mean, or the quantile that the design minimises.
        joules: joules per client, mean over the clients, by the same statistic.
        accuracy: validation accuracy at the end.
        design_seconds, design_joules: seconds and joules by the draws of the design, which has been
            chosen for them.
        quantiles: simulated seconds of the predicted rounds that 10, 50 and 90 % of draws of their
            channels do not exceed.
        dominant: draws that make much of a mean.
    """

    rounds: Interval
    seconds: Interval
    joules: Interval
    accuracy: float
    design_seconds: float
    design_joules: float
    quantiles: tuple[float, ...]
    dominant: tuple[Dominant, ...] = ()

    @property
    def numbers(self) -> tuple[float, ...]:
        """Rounds, seconds, joules per client and accuracy.

        If all of them are finite, the ends of the intervals of the first three follow.
        """
        costs = self.rounds, self.seconds, self.joules
        ends = [end for cost in costs for end in (cost.low, cost.high)]
        values = *(cost.value for cost in costs), self.accuracy
        return (*values, *ends) if np.isfinite(ends).all() else values


EVALUATED = 4
"""Number of draws of the evaluation, relative to those of the design."""
WIDE = 64
"""Number of rounds of which simulated runs consist, relative to the draws of the design."""
MOST_ROUNDS, MOST_CHANNELS = 2**12, 2**20
"""Largest numbers of these rounds and of their channels, which bound memory and time."""
STREAM = "design evaluation"
LEVEL = 0.9
"""Probability of intervals."""
QUANTILES = (0.1, 0.5, 0.9)
"""Quantiles over draws of channels that are reported."""
SHARE = 0.2
"""Part of a mean that a single draw adds from which on it is reported."""


def predicted(goal: Goal, best: DesignChoice, draws: int) -> Prediction:
    """What the run of a design should take, by other draws than those of the design.

    Runs are simulated: each has a number of rounds, from the bootstrap of the curve, and the
    costs of as many rounds, drawn with replacement from a bootstrap of the evaluation's rounds.
    Few rounds with heavy tails are far from their mean. Seconds and joules are means, or the
    quantile of the goal over runs with the predicted rounds.
    """
    sample = best.family.sample(best.clients, EVALUATED * draws, STREAM)
    costs = best.costs(sample)
    means = [mean.item() for mean in costs.means]
    where = best.where(best.family.planner.network.clients)
    curve, accuracy, rounds = best.family.curve, goal.target, best.rounds
    possible: FloatArray | None = None
    if accuracy is None:
        affordable = goal.rounds(curve, *map(np.array, means), **where)
        rounds = max(float(np.floor(SLACK * affordable)), 1.0)
        accuracy = float(curve.accuracy(rounds, **where))
    else:
        possible = _possible_rounds(goal, curve, accuracy, **where)
    per_round = _rounds(best, sample, WIDE * draws, costs)
    stream = sample.planner.stream.child("runs")
    sums = totals(np.full(RUNS, rounds), per_round, stream).T
    times, values = sums[0], [rounds * mean for mean in means]
    if goal.quantile is not None:
        values = [quantile_of(costs_of_runs, goal.quantile) for costs_of_runs in sums]
    seconds, joules = (_interval(value, None) for value in values)
    numbers = possible
    if goal.target is None and goal.max_seconds is None:  # the run has exactly these rounds
        numbers = np.array([rounds])
    if numbers is not None:
        runs = totals(np.resize(numbers, RUNS), per_round, stream, uncertain=True).T
        seconds, joules = map(_interval, values, runs)
    if goal.target is None and goal.max_seconds is not None:  # the run ends within a round
        times = np.full(RUNS, goal.max_seconds)
        seconds = _interval(goal.max_seconds, None)
    return Prediction(
        _interval(rounds, possible),
        seconds,
        joules,
        accuracy,
        best.rounds * best.seconds,
        best.rounds * best.joules,
        tuple(quantile_of(times, part) for part in QUANTILES),
        () if best.way.noise or goal.quantile else _dominant(goal, best, draws, sample, costs),
    )


def _rounds(best: DesignChoice, sample: SampledRounds, draws: int, costs: Costs) -> FloatArray:
    """Seconds and joules [draws, 2] of the rounds of which simulated runs consist.

    A run whose slowest round is slower than all of the sample is outside its interval: there are
    many of them, unless they need beamformers.
    """
    most = min(MOST_ROUNDS, MOST_CHANNELS // best.family.planner.network.clients)
    most = max(most, sample.draws)
    if (wide := sample.wider(min(draws, most), best.way.uplink)) is not sample:
        costs = best.costs(wide)
    return np.stack([costs.seconds.ravel(), costs.joules.ravel()], -1)


def _possible_rounds(goal: Goal, curve: Curve, target: float, **where: Any) -> FloatArray | None:
    """Whole rounds that a run may need, [draws of the curve]; None if the curve does not say."""
    draws = getattr(curve, "draws", None)
    if draws is None or (isinstance(curve, RoundsCurve) and not curve.replicates):
        return None
    return goal.whole(draws(target, **where))


def _interval(value: float, samples: FloatArray | None) -> Interval:
    """A prediction with its interval; ``samples`` is None if there is none."""
    if samples is None:
        return Interval(float(value), float(value), float(value))
    # Between two samples of which one is infinite, linear interpolation gives NaN.
    low = np.quantile(samples, (1 - LEVEL) / 2, method="lower")
    high = np.quantile(samples, (1 + LEVEL) / 2, method="higher")
    return Interval(float(value), float(low), float(high))


def _dominant(
    goal: Goal, best: DesignChoice, draws: int, evaluation: SampledRounds, evaluated: Costs
) -> tuple[Dominant, ...]:
    """The draws that make much of a mean, of the design's sample and of the evaluation."""
    counted = ["seconds", *([] if goal.seconds_only else ["joules"])]
    designed = best.family.sample(best.clients, draws)
    dominant = []
    for name, sample, costs in (
        ("the design", designed, best.costs(designed)),
        ("the evaluation", evaluation, evaluated),
    ):
        for cost in counted:
            values = getattr(costs, cost).ravel()
            mean, worst = float(values.mean()), int(values.argmax())
            without = float(np.delete(values, worst).mean())
            if mean > 0 and (share := 1 - without / mean) > SHARE:
                client = _slowest(best, sample, worst)
                numbers = len(values), client, share, mean, without
                dominant.append(Dominant(cost, name, worst, *numbers))
    return tuple(dominant)


def _slowest(best: DesignChoice, sample: SampledRounds, draw: int) -> int:
    """The client that causes the costs of a draw: of the slowest clients, the one that fades."""
    assigned = sample.with_assigner(best.assigner())
    plan = assigned.planned(best.way.uplink, best.local_steps, best.edge_rounds, draw)
    costs = ClientCosts.of(plan)
    # With optimal bands, all clients of a cell end together.
    slowness = costs.bits / np.log2(1 + 10 ** (costs.snr_db / 10))
    blame = np.where(costs.stragglers, costs.over_rounds(slowness), 0.0)
    return int(costs.clients[blame.argmax()])


RUNS = 2000
"""Number of simulated runs."""


def totals(
    rounds: FloatArray, costs: FloatArray, stream: Stream, *, uncertain: bool = False
) -> FloatArray:
    """Costs [runs, costs] of runs: sums of as many sampled rounds, drawn with replacement.

    Args:
        rounds: [runs], number of rounds of each run; inf for runs that do not end.
        costs: [draws, costs], costs of the sampled rounds.
        stream: randomness of the runs.
        uncertain: whether each run draws from a bootstrap of the sample, because the sample may
            lack deep fades of the run, or have too many.
    """
    generator, draws = stream.generator(), len(costs)
    chances: FloatArray = np.full(draws, 1 / draws)
    if uncertain:
        chances = generator.multinomial(draws, chances, len(rounds)) / draws
    ends = np.isfinite(rounds)
    counts = generator.multinomial(np.where(ends, rounds, 1).astype(np.int64), chances)
    return np.where(ends[:, None], _sums(counts, costs), np.inf)


def quantiles(rounds: FloatArray, costs: FloatArray, part: float, stream: Stream) -> FloatArray:
    """The costs that a part of the runs does not exceed, [H, E].

    Args:
        rounds: [H, E], number of rounds of the runs; inf for runs that do not end.
        costs: [draws, H, E], costs of the sampled rounds.
        part: the part of runs, in (0, 1).
        stream: randomness of the runs, which is the same for equal numbers of rounds.
    """

    @cache
    def counts(number: int) -> IntArray:
        generator, draws = stream.child("rounds", number).generator(), len(costs)
        return generator.multinomial(np.full(RUNS, number), np.full(draws, 1 / draws))

    result = np.full(rounds.shape, np.inf)
    for h, e in np.argwhere(np.isfinite(rounds)):
        sums = _sums(counts(int(rounds[h, e])), costs[:, h, e, None])
        result[h, e] = quantile_of(sums[:, 0], part)
    return result


def quantile_of(values: FloatArray, part: float) -> float:
    """The least of some values that at least this part of them does not exceed."""
    # Interpolated quantiles are NaN between infinite values.
    return float(np.quantile(values, part, method="inverted_cdf"))


def _sums(counts: IntArray, costs: FloatArray) -> FloatArray:
    """Sums [runs, costs] of costs [draws, costs] that occur ``counts`` [runs, draws] times."""
    if np.isfinite(costs).all():
        return np.asarray(counts @ costs)
    with np.errstate(invalid="ignore"):  # what does not occur may be infinite
        products = counts[..., None] * costs
        return np.asarray(np.where(counts[..., None] > 0, products, 0.0).sum(1))
