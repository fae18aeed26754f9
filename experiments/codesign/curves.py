"""Rounds to the target that pilots predict: the curve of a design, and the bound of Luo et al.

Pilots are runs of the grid up to the target. Fits see their accuracy on validation data only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
)
from experiments.evidence import Evidence
from wirelessfl.results.archive import StoredRun

PILOTS = 8
"""Number of pilots of a curve."""
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
    """

    dataset: str
    algorithm: str
    seed: int
    method: str
    form: str
    pilots: tuple[int, ...]
    rounds: Numbers


def designed() -> tuple[int, ...]:
    """The pilots' places in ``PAIRS``."""
    h, e = np.array(PAIRS, float).T
    features = np.stack([1 / (h * e), np.ones_like(h), h, e], 1)
    scale = 1 / features.mean(0)
    chosen: list[int] = []
    for _ in range(PILOTS):
        rest = [i for i in range(len(PAIRS)) if i not in chosen]
        gains = []
        for i in rest:
            x = features[[*chosen, i]] * scale
            gains.append(np.linalg.slogdet(x.T @ x + 1e-3 * np.eye(4))[1])
        chosen.append(rest[int(np.argmax(gains))])
    return tuple(sorted(chosen))


def curves(evidence: Evidence) -> list[Curve]:
    """Both predictions, for each data set, algorithm and seed with all pilots."""
    found = []
    for (dataset, algorithm, seed), by_pair in by_place(evidence).items():
        pilots = designed()
        if not all(PAIRS[place] in by_pair for place in pilots):
            continue
        runs = {PAIRS[place]: by_pair[PAIRS[place]] for place in pilots}
        target = TARGETS[dataset]
        for method, (form, rounds) in (
            (CURVE, fitted(runs, target)),
            (LUO, luo(runs, target)),
        ):
            shown = tuple(float(f"{r:.6g}") if math.isfinite(r) else None for r in rounds)
            found.append(Curve(dataset, algorithm, seed, method, form, pilots, shown))
    return found


def fitted(runs: Mapping[tuple[int, int], StoredRun], target: float) -> tuple[str, Sequence[float]]:
    """The form of the curve of these pilots, and its rounds for all pairs.

    Predicted rounds are those of the next evaluation: runs are tested every few rounds only.
    """
    curve = wirelessfl.fit_rounds(
        [until(run, target) for run in runs.values()],
        [share * target for share in SHARES],
        bootstrap=0,
    )
    h, e = np.array(PAIRS).T
    rounds = np.asarray(curve.rounds(target, h, e, CLIENTS), float)
    every = np.array([evaluated(*pair) for pair in PAIRS])
    return curve.form, list(every * np.ceil(rounds / every))


def until(run: StoredRun, target: float) -> StoredRun:
    """The run as it would be if it had ended at the target."""
    hit = first_round(run.rows, target)
    return run if hit is None else replace(run, rows=[r for r in run.rows if r["round"] <= hit])


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
    each = np.array(steps)
    terms = np.stack([1 / each, each], 1) / np.array(between)[:, None]
    (a, b), _ = nnls(terms, np.ones(len(between)))
    return "A / (H E) + B H E", [a / (h * e) + b * h * e for h, e in PAIRS]
