"""Rounds to the target that pilots predict: the curve of a design, and the bound of Luo et al.

Pilots are runs of the grid up to the target, or up to the steps of a pilot. Fits see their accuracy
on validation data only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

import wirelessfl
from experiments.codesign.grid import complete
from experiments.codesign.sweep import (
    PAIRS,
    TARGETS,
    Numbers,
    by_place,
    first_round,
    short,
)
from experiments.evidence import Evidence
from wirelessfl.designs.pilot_plan import COUNT, STEPS
from wirelessfl.designs.points import PilotChoices, chosen_points
from wirelessfl.results.archive import StoredRun

SHARES = (0.8, 0.9, 1.0)
"""Targets that a curve is fitted to, relative to the target."""
CLIENTS = 20
CURVE, LUO = "curve", "Luo et al."
"""How rounds are predicted."""
LOWER = 0.9
"""Lower target of the estimate of Luo et al., relative to the target."""


class Curve(NamedTuple):
    """Predicted rounds to the target of all pairs (H, E).

    Args:
        dataset: name of the data set.
        algorithm: name of the algorithm.
        seed: seed of the pilots.
        method: ``CURVE`` or ``LUO``, whose rounds have an arbitrary unit.
        form: form of the curve.
        pilots: places of the pilots in ``PAIRS``.
        rounds: [20], predicted rounds; None where the target is never reached.
        cpu_seconds: CPU seconds of the pilots.
    """

    dataset: str
    algorithm: str
    seed: int
    method: str
    form: str
    pilots: tuple[int, ...]
    rounds: Numbers
    cpu_seconds: float


@cache
def designed() -> tuple[int, ...]:
    """The pilots' places in ``PAIRS``, chosen as ``wirelessfl.pilot`` does."""
    steps, edges = (tuple(sorted({pair[i] for pair in PAIRS})) for i in (0, 1))
    points = chosen_points(PilotChoices(steps, edges), COUNT)
    return tuple(sorted(PAIRS.index((p.local_steps, p.edge_rounds)) for p in points))


def curves(evidence: Evidence) -> list[Curve]:
    """Both predictions, for each data set, algorithm and seed with all pilots."""
    records = []
    for (dataset, algorithm, seed), by_pair in by_place(evidence).items():
        pilots = designed()
        if not all(PAIRS[place] in by_pair for place in pilots):
            continue
        target = TARGETS[dataset]
        runs = {PAIRS[place]: as_pilot(by_pair[PAIRS[place]], target) for place in pilots}
        cpu = sum(run.seconds for run in runs.values())
        curve = fitted(runs, target)
        for method, (form, rounds) in (
            (CURVE, (curve.form, predicted(curve, target))),
            (LUO, luo(runs, target)),
        ):
            shown = tuple(short(r) if math.isfinite(r) else None for r in rounds)
            records.append(Curve(dataset, algorithm, seed, method, form, pilots, shown, short(cpu)))
    return records


def fitted(runs: Mapping[tuple[int, int], StoredRun], target: float) -> wirelessfl.RoundsCurve:
    """The curve of pilots."""
    targets = [share * target for share in SHARES]
    return wirelessfl.fit_rounds(list(runs.values()), targets, bootstrap=0)


def predicted(curve: wirelessfl.RoundsCurve, target: float) -> list[float]:
    """Rounds of all pairs to the next evaluation, since runs are tested every few rounds only."""
    h, e = np.array(PAIRS).T
    rounds = np.asarray(curve.rounds(target, h, e, CLIENTS), float)
    every = np.array([evaluated(*pair) for pair in PAIRS])
    return [*(every * np.ceil(rounds / every)).tolist()]


def as_pilot(run: StoredRun, target: float) -> StoredRun:
    """The run as a pilot, which ends at the target or after ``STEPS`` local steps."""
    training = run.settings["training"]
    most = STEPS // (training["local_steps"] * training["edge_rounds"])
    hit = first_round(run.rows, target)
    end = most if hit is None else min(hit, most)
    rows = [row for row in run.rows if row["round"] <= end]
    seconds = run.seconds * rows[-1]["round"] / run.rows[-1]["round"]
    return replace(run, rows=rows, seconds=seconds)


def evaluated(local_steps: int, edge_rounds: int) -> int:
    """Rounds between evaluations of the runs with this pair."""
    settings = complete({"local_steps": local_steps, "edge_rounds": edge_rounds}, "small")
    return int(settings["eval_every"])


def luo(runs: Mapping[tuple[int, int], StoredRun], target: float) -> tuple[str, Sequence[float]]:
    """Rounds as in Luo et al. (INFOCOM 2021), up to a factor.

    With all clients in each round and I = H E local steps between averages of all clients, their
    bound is R = (A / I + B I) / eps plus a constant. The constant cancels in the rounds between two
    targets; non-negative least squares of relative errors give A / eps and B / eps.
    """
    steps, between = [], []
    for (h, e), run in runs.items():
        last, first = (first_round(run.rows, share * target) for share in (1.0, LOWER))
        if last is not None and first is not None:
            steps.append(float(h * e))
            between.append(max(float(last - first), 0.5))
    lengths = np.array(steps)
    terms = np.stack([1 / lengths, lengths], 1) / np.array(between)[:, None]
    (a, b), _ = nnls(terms, np.ones(len(between)))
    return "A / (H E) + B H E", [a / (h * e) + b * h * e for h, e in PAIRS]
