"""Samples: designs and what others choose, pairs (H, E) with predicted and realised costs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from experiments.codesign.curves import CURVE, LUO, Curve
from experiments.codesign.networks import SecondsAndJoules
from experiments.codesign.searches import PairSearch
from experiments.codesign.stored import Found
from experiments.codesign.sweep import ALGORITHMS, PAIRS, GridRuns, Sweep, reached
from experiments.codesign.tuned import Tuned
from experiments.decided.uplinks import EQUAL, SLOTS
from wirelessfl.designs.pilot_plan import COUNT

SECONDS, JOULES = "seconds", "joules"
"""What a design minimises."""
FIXED = PAIRS.index((20, 5))
FIXED_UPLINKS = (SLOTS, EQUAL)
"""The papers' fixed settings, see ``criteria.toml``."""
BEST_PILOT, SWEEP, FIXED_PAIR = "best pilot", "sweep", "H = 20, E = 5"
DESIGN, FEDTUNE = "design", "FedTune"


class Design(NamedTuple):
    """A design, with what it costs.

    Args:
        sweep: all pairs over its network and uplink.
        place: place of its pair in ``PAIRS``.
        predicted: predicted cost to the target.
        realised: cost of the stored run; infinite if it does not reach the target.
    """

    sweep: Sweep
    place: int
    predicted: SecondsAndJoules
    realised: SecondsAndJoules

    @property
    def pair(self) -> tuple[int, int]:
        """Local steps and edge rounds (H, E)."""
        return PAIRS[self.place]

    def error(self, objective: str = SECONDS) -> float:
        """|predicted / realised - 1|."""
        return abs(getattr(self.predicted, objective) / getattr(self.realised, objective) - 1)

    def regret(self) -> float:
        """Cost relative to the best pair over the same network and uplink, minus 1."""
        least = min(reached(self.sweep.seconds))
        return self.realised.seconds / least - 1


class Sample(NamedTuple):
    """A data set, network and seed, with all that is stored for it.

    Args:
        dataset: name of the data set.
        network: name of the network.
        seed: the seed.
        sweeps: by algorithm and uplink.
        curves: by algorithm and method.
        trained: by algorithm.
        searches: all searches.
        tuned: runs with FedTune.
        others: rounds to the target of runs with other seeds, by algorithm.
    """

    dataset: str
    network: str
    seed: int
    sweeps: dict[tuple[str, str], Sweep]
    curves: dict[tuple[str, str], Curve]
    trained: dict[str, GridRuns]
    searches: list[PairSearch]
    tuned: list[Tuned]
    others: dict[str, list[GridRuns]]

    @property
    def algorithms(self) -> list[str]:
        """Algorithms with all runs."""
        return [
            name
            for name in ALGORITHMS
            if name in self.trained and self.trained[name].complete and (name, CURVE) in self.curves
        ]

    def of(self, sweep: Sweep, place: int, method: str = CURVE) -> Design:
        """The design with a pair over a network and uplink, predicted by a curve."""
        curve = self.curves[sweep.algorithm, method]
        (rounds,) = reached([curve.rounds[place]])
        per_round = reached([sweep.round_seconds[place], sweep.round_joules[place]])
        spent = reached([sweep.seconds[place], sweep.joules[place]])
        return Design(
            sweep,
            place,
            SecondsAndJoules(*(rounds * one for one in per_round)),
            SecondsAndJoules(*spent),
        )

    def best_pair(self, sweep: Sweep, objective: str = SECONDS, method: str = CURVE) -> Design:
        """The pair with the least predicted cost over a network and uplink."""
        every = (self.of(sweep, place, method) for place in range(len(PAIRS)))
        return min(every, key=lambda one: getattr(one.predicted, objective))

    def design(self, objective: str = SECONDS) -> Design:
        """The least predicted cost over all algorithms, uplinks and pairs."""
        every = (
            self.best_pair(sweep, objective)
            for (algorithm, _), sweep in self.sweeps.items()
            if algorithm in self.algorithms
        )
        return min(every, key=lambda one: getattr(one.predicted, objective))

    def fixed(self) -> dict[tuple[str, str], float]:
        """Realised seconds of the papers' fixed settings, by algorithm and uplink."""
        return {
            (algorithm, uplink): reached(sweep.seconds)[FIXED]
            for (algorithm, uplink), sweep in self.sweeps.items()
            if uplink in FIXED_UPLINKS and algorithm in self.algorithms
        }

    def elsewhere(self, sweep: Sweep) -> list[float]:
        """Mean seconds of all pairs in runs with other seeds over this network, [20].

        Rounds are those of the other runs, at least: a run that does not reach the target counts
        with its length. Seconds of a round are those that are expected here. Infinity without other
        runs.
        """
        columns = [
            [hit or length or math.inf for hit, length in zip(one.rounds, one.lengths, strict=True)]
            for one in self.others[sweep.algorithm]
        ]
        return [
            statistics.mean(rounds) * cost if rounds else math.inf
            for *rounds, cost in zip(*columns, reached(sweep.round_seconds), strict=True)
        ]

    def best_pilot(self, sweep: Sweep) -> int:
        """The place of the pilot that reaches the target soonest over a network and uplink."""
        pilots = self.curves[sweep.algorithm, CURVE].pilots
        return min(pilots, key=reached(sweep.seconds).__getitem__)


def samples(record: Found) -> list[Sample]:
    """Every data set, network and seed with all runs of some algorithm."""
    places = dict.fromkeys((one.dataset, one.network, one.seed) for one in record.sweeps)
    every = []
    for dataset, network, seed in places:
        one = Sample(
            dataset,
            network,
            seed,
            {
                (s.algorithm, s.uplink): s
                for s in record.sweeps
                if (s.dataset, s.network, s.seed) == (dataset, network, seed)
            },
            {
                (c.algorithm, c.method): c
                for c in record.curves
                if (c.dataset, c.seed) == (dataset, seed)
            },
            {t.algorithm: t for t in record.trained if (t.dataset, t.seed) == (dataset, seed)},
            [
                s
                for s in record.searches
                if (s.dataset, s.network, s.seed) == (dataset, network, seed)
            ],
            [t for t in record.tuned if (t.dataset, t.network, t.seed) == (dataset, network, seed)],
            {
                name: [
                    t
                    for t in record.trained
                    if (t.dataset, t.algorithm) == (dataset, name) and t.seed != seed and t.complete
                ]
                for name in ALGORITHMS
            },
        )
        if one.algorithms:
            every.append(one)
    return every


class Chosen(NamedTuple):
    """What a method chooses for a sample, over the design's algorithm and uplink.

    Args:
        method: name of the method.
        places: places of its choices in ``PAIRS``; several if its choice is random, and none if
            it has no single pair.
        seconds: realised seconds of its choices.
        trainings: number of trainings before the choice.
        cpu_seconds: their CPU seconds.
    """

    method: str
    places: tuple[int, ...]
    seconds: tuple[float, ...]
    trainings: int
    cpu_seconds: float


def chosen(sample: Sample) -> list[Chosen]:
    """What all methods choose over the algorithm and uplink of the sample's design."""
    design = sample.design()
    sweep = design.sweep
    seconds, runs = reached(sweep.seconds), sample.trained[sweep.algorithm]
    cpu = [number or 0.0 for number in runs.cpu_seconds]
    piloted = sample.curves[sweep.algorithm, CURVE].cpu_seconds
    best = min(range(len(PAIRS)), key=seconds.__getitem__)
    luo = sample.best_pair(sweep, method=LUO).place
    choices: list[tuple[str, tuple[int, ...], int, float]] = [
        (SWEEP, (best,), len(PAIRS), sum(cpu)),
        (DESIGN, (design.place,), COUNT, piloted),
        (BEST_PILOT, (sample.best_pilot(sweep),), COUNT, piloted),
        (LUO, (luo,), COUNT, piloted),
        *(
            (one.method, one.chosen, one.trainings, one.cpu_seconds)
            for one in sample.searches
            if one.place == sweep.place
        ),
        (FIXED_PAIR, (FIXED,), 0, 0.0),
    ]
    designs = [
        Chosen(method, places, tuple(seconds[place] for place in places), trainings, spent)
        for method, places, trainings, spent in choices
    ]
    designs += [
        Chosen(FEDTUNE, (), (math.inf if one.seconds is None else one.seconds,), 1, one.cpu_seconds)
        for one in sample.tuned
        if one.place == sweep.place
    ]
    return designs


def later(runs: Iterable[GridRuns]) -> list[float]:
    """|rounds of one seed / rounds of another - 1| at the same pair, over all pairs of seeds.

    It is the error of a prediction that knows the pair's rounds of another seed.
    """
    by_run: dict[tuple[str, str], list[GridRuns]] = {}
    for one in runs:
        by_run.setdefault((one.dataset, one.algorithm), []).append(one)
    return [
        abs(a / b - 1)
        for same in by_run.values()
        for one in same
        for other in same
        if one.seed != other.seed
        for a, b in zip(one.rounds, other.rounds, strict=True)
        if a is not None and b is not None
    ]


def median(numbers: Sequence[float]) -> float:
    """Their median; NaN without numbers."""
    return statistics.median(numbers) if numbers else math.nan
