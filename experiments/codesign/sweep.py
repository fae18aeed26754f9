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

from experiments.codesign.networks import NETWORKS, UPLINKS, expected, realised
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


class Trained(NamedTuple):
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
    found: dict[tuple[str, str, int], dict[tuple[int, int], StoredRun]] = {}
    for case, run in runs(evidence):
        place = case["dataset"], case["algorithm"], run.seed
        found.setdefault(place, {})[case["local_steps"], case["edge_rounds"]] = run
    return found


def trained(evidence: Evidence) -> list[Trained]:
    """The runs of the grid by data set, algorithm and seed."""
    found = []
    for (dataset, algorithm, seed), by_pair in by_place(evidence).items():
        rounds, lengths, cpu = [], [], []
        for pair in PAIRS:
            run = by_pair.get(pair)
            hit = run and first_round(run.rows, TARGETS[dataset])
            last = run and run.rows[-1]["round"]
            rounds.append(hit)
            lengths.append(last)
            cpu.append(None if run is None else _short(run.seconds * (hit or last) / last))
        found.append(Trained(dataset, algorithm, seed, tuple(rounds), tuple(lengths), tuple(cpu)))
    return found


def _short(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def sweeps(
    evidence: Evidence, known: Iterable[Sweep], show: Callable[[str], None] = lambda text: None
) -> Iterator[Sweep]:
    """The prices of all runs that are stored.

    Args:
        evidence: stored runs of the grid.
        known: what has been priced, which is not priced again if the runs reach the target in the
            same round.
        show: is given a line per network and uplink.
    """
    before = {one.place: one for one in known}
    configs = {
        (case["algorithm"], case["dataset"], case["local_steps"], case["edge_rounds"]): case
        for case in evidence.study("grid").study.cases
    }
    for (dataset, algorithm, seed), by_pair in by_place(evidence).items():
        for network in NETWORKS:
            for uplink in UPLINKS:
                old = before.get((dataset, algorithm, seed, network, uplink))
                columns: list[list[float | None]] = [[] for _ in range(5)]
                for place, pair in enumerate(PAIRS):
                    run = by_pair.get(pair)
                    hit = run and first_round(run.rows, TARGETS[dataset])
                    each: list[float | None] = [None, None]
                    if old is not None and old.round_seconds[place] is not None:
                        each = [old.round_seconds[place], old.round_joules[place]]
                    elif run is not None:
                        case = configs[(algorithm, dataset, *pair)]
                        each = [*map(_short, expected(case.config(seed), network, uplink))]
                    spent: list[float | None] = [None, None]
                    if old is not None and hit is not None and old.rounds[place] == hit:
                        spent = [old.seconds[place], old.joules[place]]
                    elif run is not None and hit is not None:
                        spent = [*map(_short, realised(run, hit, network, uplink))]
                    for column, number in zip(columns, (hit, *spent, *each), strict=True):
                        column.append(number)
                show(f"{dataset}, {algorithm}, seed {seed}, {network}, {uplink}")
                yield Sweep(dataset, algorithm, seed, network, uplink, *map(tuple, columns))


def reached(numbers: Sequence[float | None]) -> list[float]:
    """The numbers, with infinity where there is none."""
    return [math.inf if number is None else number for number in numbers]
