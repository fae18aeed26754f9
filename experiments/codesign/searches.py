"""What a search without a model finds: Optuna's sampler over the grid, with as many trainings.

A trial is a training, whose seconds are those of the sweep. A pair that is tried again is not
trained again. Optuna is needed to compute the choices, not to read them (extra ``search``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from experiments.codesign.sweep import PAIRS, GridRuns, Sweep, reached, short
from wirelessfl.designs.pilot_plan import COUNT

TPE, GUIDED = "TPE", "TPE, 4 random trials"
"""Optuna's sampler with its default of ten random trials first, and with four."""
FIRST = {TPE: 10, GUIDED: 4}
SAMPLERS = 10
"""Number of sampler seeds per sweep."""
ASKED = 200
"""Most trials, with repetitions, of a search."""


class PairSearch(NamedTuple):
    """Choices of a search over one network and uplink, one per seed of the sampler.

    Args:
        dataset: name of the data set.
        algorithm: name of the algorithm.
        seed: seed of the runs.
        network: one of ``networks.NETWORKS``.
        uplink: one of ``networks.UPLINKS``.
        method: ``TPE`` or ``GUIDED``.
        trainings: number of distinct pairs tried.
        chosen: places in ``PAIRS`` of the soonest pair that each sampler tried.
        cpu_seconds: CPU seconds of the trainings, mean over the samplers.
    """

    dataset: str
    algorithm: str
    seed: int
    network: str
    uplink: str
    method: str
    trainings: int
    chosen: tuple[int, ...]
    cpu_seconds: float

    @property
    def place(self) -> tuple[Any, ...]:
        """All but the numbers."""
        return tuple(self[:5])


def searches(
    sweeps: Iterable[Sweep],
    trained: Iterable[GridRuns],
    show: Callable[[str], None] = lambda text: None,
) -> Iterator[PairSearch]:
    """The choices of the samplers over all sweeps without missing runs."""
    by_run = {one[:3]: one for one in trained}
    for sweep in sweeps:
        runs = by_run[sweep[:3]]
        if not runs.complete:
            continue
        seconds = reached(sweep.seconds)
        for method, first in FIRST.items():
            tried = [tpe(seconds, number, first) for number in range(SAMPLERS)]
            chosen = tuple(min(places, key=seconds.__getitem__) for places in tried)
            spent = [sum(runs.cpu_seconds[place] or 0 for place in places) for places in tried]
            cpu = short(sum(spent) / len(spent))
            yield PairSearch(*sweep.place, method, COUNT, chosen, cpu)
        show(f"searched: {', '.join(map(str, sweep.place))}")


def tpe(seconds: list[float], seed: int, first: int) -> list[int]:
    """The ``COUNT`` places in ``PAIRS`` that Optuna's sampler tries first, once each.

    Args:
        seconds: [20], seconds to the target; infinity where it is not reached.
        seed: seed of the sampler.
        first: number of random trials before the first guided one.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    steps = sorted({h for h, _ in PAIRS})
    edges = sorted({e for _, e in PAIRS})
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=first)
    study = optuna.create_study(sampler=sampler)
    tried: list[int] = []
    for _ in range(ASKED):
        if len(tried) == COUNT:
            break
        trial = study.ask()
        h = steps[trial.suggest_int("H", 0, len(steps) - 1)]
        e = edges[trial.suggest_int("E", 0, len(edges) - 1)]
        place = PAIRS.index((h, e))
        value = seconds[place]
        study.tell(trial, value if math.isfinite(value) else math.inf)
        if place not in tried:
            tried.append(place)
    return tried
