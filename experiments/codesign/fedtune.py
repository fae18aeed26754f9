"""FedTune (Zhang et al., arXiv 2110.03061): the number of local steps is tuned while a run trains.

FedTune tunes participants and local passes from the overheads of computing and sending; here all
clients take part, and it tunes H by 1 at a time from the papers' H = 20, with E = 5. The objective
is seconds, so computing and sending have weights of 1/2, and their loads none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import numpy as np

import wirelessfl
from channels.arrays import FloatArray
from experiments.codesign.networks import over
from experiments.codesign.sweep import FIELD, TARGETS, first_round, short
from experiments.evidence import Evidence
from wirelessfl.rounds.redesign import SoFar

FIRST = 20, 5
"""H at the start, and E."""
GAIN = 0.01
"""Least gain of accuracy between two decisions."""
PENALTY = 10.0
"""Factor of the overheads that speak against a decision which made things worse."""
LONGEST = 100
"""Largest number of local steps."""


class Tuned(NamedTuple):
    """A run with FedTune over one network and uplink.

    Args:
        dataset: name of the data set.
        algorithm: name of the algorithm.
        seed: seed of the run.
        network: one of ``networks.NETWORKS``.
        uplink: one of ``networks.UPLINKS``.
        local_steps: H at the end.
        rounds: global rounds to the target; None if it is not reached.
        seconds: simulated seconds to the target.
        joules: joules per client to the target.
        cpu_seconds: CPU seconds of the run.
    """

    dataset: str
    algorithm: str
    seed: int
    network: str
    uplink: str
    local_steps: int
    rounds: int | None
    seconds: float | None
    joules: float | None
    cpu_seconds: float

    @property
    def place(self) -> tuple[Any, ...]:
        """All but the numbers."""
        return tuple(self[:5])


@dataclass(frozen=True)
class FedTune(wirelessfl.Redesign):
    """Decides H after each round that gains accuracy."""

    every: int = 1
    reads: ClassVar[tuple[str, ...]] = (FIELD,)

    def decide(self, run: SoFar) -> wirelessfl.RoundSettings:
        """See ``Redesign``; the sequence of all decisions follows from the rows."""
        few, many = (run.cost(replace(run.settings, local_steps=h)).seconds for h in (1, FIRST[0]))
        step = (many - few) / (FIRST[0] - 1)
        rows = run.rows[1:]
        taken = [int(row["local_steps"]) for row in rows]
        spent = np.array([[h * step, few - step] for h in taken])
        accuracies = [float(row[FIELD]) for row in rows]
        return replace(run.settings, local_steps=tuned(taken, accuracies, spent))


def tuned(steps: Sequence[int], accuracies: Sequence[float], spent: FloatArray) -> int:
    """The number of local steps after these rounds.

    Args:
        steps: [rounds], H of each round.
        accuracies: [rounds], accuracy after each round.
        spent: [rounds, 2], seconds of computing and of sending.
    """
    favour = np.array([1.0, 1.0])  # of fewer steps, because of computing; of more, of sending
    total, last = np.zeros(2), 0.0
    before: list[tuple[int, FloatArray]] = []  # H and overheads per accuracy, by decision
    chosen = steps[0]
    for now, accuracy, cost in zip(steps, accuracies, spent, strict=True):
        total = total + cost
        if accuracy - last <= GAIN:
            continue
        each = total / (accuracy - last)
        if before:
            past_steps, past = before[-1]
            further = before[-2][1] if len(before) > 1 else np.zeros(2)
            change = np.abs(each - past)
            trend = change / np.maximum(np.abs(past - further), 1e-12)
            worse = float(((each - past) / each).sum()) > 0
            gains, loses = (1, 0) if now > past_steps else (0, 1)
            favour[gains] = trend[gains]
            favour[loses] *= PENALTY if worse else 1.0
            computing, sending = favour * change / each
            chosen = now + 1 if sending > computing else now - 1
            chosen = min(max(chosen, 1), LONGEST)
        before.append((now, each))
        total, last = np.zeros(2), accuracy
    return chosen


def tune(
    evidence: Evidence,
    places: Iterable[tuple[str, str, int, str, str]],
    known: Iterable[Tuned],
    show: Callable[[str], None] = lambda text: None,
) -> Iterator[Tuned]:
    """Train with FedTune over these networks and uplinks, unless that is known.

    Args:
        evidence: stored runs of the grid, whose settings the runs have.
        places: see ``Tuned.place``.
        known: runs that have been made.
        show: is given a line per run.
    """
    done = {one.place: one for one in known}
    cases = {
        (case["dataset"], case["algorithm"]): case
        for case in evidence.study("grid").study.cases
        if (case["local_steps"], case["edge_rounds"]) == FIRST
    }
    for place in places:
        dataset, algorithm, seed, network, uplink = place
        if place in done:
            yield done[place]
            continue
        config = over(cases[dataset, algorithm].config(seed), network, uplink)
        tables = config.given_tables()
        tables["evaluation"] = dict(tables["evaluation"]) | {"eval_every": 1}
        tables["evaluation"]["stop_at_target"] = True
        with TemporaryDirectory() as folder:
            tables["run"] = dict(tables["run"]) | {"out": Path(folder, "run"), "threads": 1}
            result = wirelessfl.run(tables, redesign=FedTune())
        rows = result.rows
        hit = first_round(rows, TARGETS[dataset])
        last = rows[-1]
        yield Tuned(
            *place,
            int(last["local_steps"]),
            hit,
            None if hit is None else short(last["sim_seconds"]),
            None if hit is None else short(last["joules"]),
            short(last["wall_seconds"]),
        )
        show(f"FedTune: {', '.join(map(str, place))}, {hit} rounds")
