"""Runs with FedTune, which tunes the number of local steps while its only run trains.

All clients take part, and H moves by 1 at a time from the papers' H = 20, with E = 5. The objective
is seconds, so the times of computing and sending have weights of 1/2, and their loads none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import wirelessfl
from experiments.codesign.fedtune import FedTune
from experiments.codesign.networks import over
from experiments.codesign.sweep import TARGETS, first_round, short
from experiments.evidence import Evidence

FIRST = 20, 5
"""H at the start, and E."""
STEPS = 1, 100
"""Least and largest H."""
TIMES = 0.5, 0.5, 0.0, 0.0
"""Weights of the four overheads."""


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


def tune(
    evidence: Evidence,
    places: Iterable[tuple[str, str, int, str, str]],
    earlier: Iterable[Tuned],
    show: Callable[[str], None] = lambda text: None,
) -> Iterator[Tuned]:
    """Train with FedTune over these networks and uplinks, unless that is known.

    Args:
        evidence: stored runs of the grid, whose settings the runs have.
        places: see ``Tuned.place``.
        earlier: runs that have been made.
        show: is given a line per run.
    """
    done = {one.place: one for one in earlier}
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
        flags = {"eval_every": 1, "stop_at_target": True, "threads": 1}
        clients = (config.network.clients, config.network.clients)
        with TemporaryDirectory() as folder:
            flags["out"] = Path(folder, "run")
            config = config.changed(**flags)
            result = wirelessfl.run(config, redesign=FedTune(TIMES, clients, STEPS))
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
