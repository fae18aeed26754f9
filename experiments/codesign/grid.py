"""The grid of runs over H and E: rounds to the target accuracy."""

from __future__ import annotations

import math
import statistics

from experiments.codesign import access
from experiments.studies import Results, Scale, Settings
from wirelessfl.results.costs import MISSING, markdown
from wirelessfl.results.selection import DATA, NAMES

STEPS = {"smoke": 60, "small": 4000, "paper": 20000}
"""Largest number of local steps per client."""
EVALUATIONS = 150
"""Largest number of evaluations of a run, about."""
FIELD = "validation_accuracy"


def complete(settings: Settings, scale: Scale) -> Settings:
    """Add the rounds, unless they are given, and the evaluations; they follow from H and E.

    Cases of the crossed study, which have an access, are completed by ``access.complete``.
    """
    if "access" in settings:
        return access.complete(settings, scale)
    rounds = math.ceil(STEPS[scale] / (settings["local_steps"] * settings["edge_rounds"]))
    rounds = settings.get("rounds", rounds)
    return settings | {"rounds": rounds, "eval_every": max(1, round(rounds / EVALUATIONS))}


def table(results: Results) -> str:
    """Rounds to the target by H and E, mean over the seeds that reach it, and how many do."""
    edges = results.values("edge_rounds")
    head = ["data, target", "algorithm", "H", *(f"rounds, E = {e}" for e in sorted(edges))]
    rows: dict[tuple[str, str, int], dict[int, str]] = {}
    for case in results.where():
        runs = results.rows(case)
        hits = [next((r["round"] for r in run if r[FIELD] >= case["target"]), None) for run in runs]
        rounds = [hit for hit in hits if hit is not None]
        mean = f"{statistics.mean(rounds):.3g}" if rounds else MISSING
        if 0 < len(rounds) < len(hits):
            mean += f" ({len(rounds)} of {len(hits)} seeds)"
        data = f"{DATA[case['dataset']]}, {100 * case['target']:g} %"
        place = data, NAMES[case["algorithm"]], case["local_steps"]
        rows.setdefault(place, {})[case["edge_rounds"]] = mean
    return markdown(
        head,
        [
            [data, name, str(steps), *(by_edge.get(e, "not run") for e in sorted(edges))]
            for (data, name, steps), by_edge in rows.items()
        ],
    )
