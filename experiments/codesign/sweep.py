"""The exhaustive sweep: every run of the grid, priced over every network and uplink.

A :class:`Sweep` has the numbers of all pairs (H, E) of one data set, algorithm, seed, network and
uplink. Rounds are those of the first evaluation on validation data that reaches the target.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.codesign.networks import NETWORKS, UPLINKS, priced
from experiments.evidence import Evidence
from experiments.studies import Case
from wirelessfl.results.archive import StoredRun

PAIRS = tuple((h, e) for h in (2, 5, 10, 20, 40) for e in (1, 2, 5, 10))
"""Numbers of local steps and edge rounds (H, E) of the grid."""
CRITERIA = tomllib.loads(Path(__file__).with_name("criteria.toml").read_text(encoding="utf-8"))
TARGETS: dict[str, float] = CRITERIA["targets"]
"""Target accuracy on validation data, by data set."""
ALGORITHMS = ("hist", "hfedavg")
FIELD = "validation_accuracy"
DIGITS = 6
"""Significant digits of stored seconds and joules."""

Numbers = tuple[float | None, ...]


class GridRuns(NamedTuple):
    """All runs of the grid with one data set, algorithm and seed, by pair (H, E).

    Args:
        dataset: name of the data set.
        algorithm: name of the algorithm.
        seed: seed of the runs.
        rounds: [20], global rounds to the target; None if a run does not reach it or is missing.
        lengths: [20], global rounds of the runs; None if it is missing.
        cpu_seconds: [20], CPU seconds of the runs to the target, or to their end.
    """

    dataset: str
    algorithm: str
    seed: int
    rounds: Numbers
    lengths: Numbers
    cpu_seconds: Numbers

    @property
    def complete(self) -> bool:
        """Whether all runs are stored."""
        return None not in self.lengths


class Sweep(NamedTuple):
    """Costs of all pairs (H, E) over one network and uplink.

    Args:
        dataset: name of the data set.
        algorithm: name of the algorithm.
        seed: seed of the runs, which places clients and draws CPUs too.
        network: one of ``networks.NETWORKS``.
        uplink: one of ``networks.UPLINKS``.
        rounds: [20], rounds to the target that the costs belong to.
        seconds: [20], simulated seconds to the target; None if it is not reached.
        joules: [20], joules per client to the target.
        round_seconds: [20], expected seconds of a round, with other fading draws.
        round_joules: [20], expected joules per client of a round.
    """

    dataset: str
    algorithm: str
    seed: int
    network: str
    uplink: str
    rounds: Numbers
    seconds: Numbers
    joules: Numbers
    round_seconds: Numbers
    round_joules: Numbers

    @property
    def place(self) -> tuple[Any, ...]:
        """All but the numbers."""
        return tuple(self[:5])


def first_round(rows: Iterable[dict[str, Any]], target: float) -> int | None:
    """Round of the first evaluation on validation data that reaches the target."""
    return next((int(row["round"]) for row in rows if row[FIELD] >= target), None)


def runs(evidence: Evidence) -> Iterator[tuple[Case, StoredRun]]:
    """The stored runs of the grid."""
    results = evidence.study("grid")
    for case in results.where():
        for run in results.of(case):
            yield case, run


def by_place(evidence: Evidence) -> dict[tuple[str, str, int], dict[tuple[int, int], StoredRun]]:
    """The stored runs by data set, algorithm and seed, and then by pair (H, E)."""
    grids: dict[tuple[str, str, int], dict[tuple[int, int], StoredRun]] = {}
    for case, run in runs(evidence):
        place = case["dataset"], case["algorithm"], run.seed
        grids.setdefault(place, {})[case["local_steps"], case["edge_rounds"]] = run
    return grids


def trained(evidence: Evidence) -> list[GridRuns]:
    """The runs of the grid by data set, algorithm and seed."""
    grids = []
    for (dataset, algorithm, seed), by_pair in by_place(evidence).items():
        rounds, lengths, cpu = [], [], []
        for pair in PAIRS:
            run = by_pair.get(pair)
            hit = run and first_round(run.rows, TARGETS[dataset])
            last = run and run.rows[-1]["round"]
            rounds.append(hit)
            lengths.append(last)
            cpu.append(None if run is None else short(run.seconds * (hit or last) / last))
        grids.append(GridRuns(dataset, algorithm, seed, tuple(rounds), tuple(lengths), tuple(cpu)))
    return grids


def short(number: float) -> float:
    """The number with as many digits as are stored."""
    return float(f"{number:.{DIGITS}g}")


def sweeps(
    evidence: Evidence, earlier: Iterable[Sweep], show: Callable[[str], None] = lambda text: None
) -> Iterator[Sweep]:
    """The prices of all runs that are stored.

    Args:
        evidence: stored runs of the grid.
        earlier: what has been priced, which is not priced again if the runs reach the target in the
            same round.
        show: is given a line per network and uplink.
    """
    before = {one.place: one for one in earlier}
    steps, edges = sorted({h for h, _ in PAIRS}), sorted({e for _, e in PAIRS})
    cases = {(case["dataset"], case["algorithm"]): case for case, _ in runs(evidence)}
    for one in trained(evidence):
        hits = [None if number is None else int(number) for number in one.rounds]
        config = cases[one.dataset, one.algorithm].config(one.seed)
        for network in NETWORKS:
            for uplink in UPLINKS:
                place = (*one[:3], network, uplink)
                if place in before and before[place].rounds == one.rounds:
                    yield before[place]
                    continue
                most = max((hit for hit in hits if hit is not None), default=1)
                costs = priced(config, most, network, uplink, steps, edges)
                where = [(steps.index(h), edges.index(e)) for h, e in PAIRS]
                spent = [
                    [None if hit is None else short(total[hit - 1, *at]) for hit, at in both]
                    for total in (costs.seconds, costs.joules)
                    for both in [list(zip(hits, where, strict=True))]
                ]
                means = [
                    [short(mean[at]) for at in where]
                    for mean in (costs.round_seconds, costs.round_joules)
                ]
                yield Sweep(*place, one.rounds, *map(tuple, (*spent, *means)))
                show(f"priced: {', '.join(map(str, place))}")


def reached(numbers: Sequence[float | None]) -> list[float]:
    """The numbers, with infinity where there is none."""
    return [math.inf if number is None else number for number in numbers]
