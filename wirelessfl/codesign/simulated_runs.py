"""Costs of runs whose rounds are drawn from a sample of rounds."""

from __future__ import annotations

from functools import cache

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream

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

    found = np.full(rounds.shape, np.inf)
    for h, e in np.argwhere(np.isfinite(rounds)):
        sums = _sums(counts(int(rounds[h, e])), costs[:, h, e, None])
        found[h, e] = quantile_of(sums[:, 0], part)
    return found


def quantile_of(values: FloatArray, part: float) -> float:
    """The least of some values that at least this part of them does not exceed."""
    # Interpolated quantiles are NaN between infinite values.
    return float(np.quantile(values, part, method="inverted_cdf"))


def _sums(counts: IntArray, costs: FloatArray) -> FloatArray:
    """Sums [runs, costs] of costs [draws, costs] that occur ``counts`` [runs, draws] times."""
    if np.isfinite(costs).all():
        return np.asarray(counts @ costs)
    with np.errstate(invalid="ignore"):  # what does not occur may be infinite
        each = counts[..., None] * costs
        return np.asarray(np.where(counts[..., None] > 0, each, 0.0).sum(1))
