"""The grid of runs over H and E: rounds to the target accuracy."""

from __future__ import annotations

import math
import statistics

from experiments.report import markdown
from experiments.studies import Results, Scale, Settings
from wirelessfl.results.names import NAMES

STEPS = {"smoke": 60, "small": 4000, "paper": 20000}
"""Largest number of local steps per client."""
EVALUATIONS = 150
"""Largest number of evaluations of a run, about."""
FIELD = "validation_accuracy"


def complete(settings: Settings, scale: Scale) -> Settings:
    """Add the number of rounds and the evaluations of a case, which follow from H and E."""
    rounds = math.ceil(STEPS[scale] / (settings["local_steps"] * settings["edge_rounds"]))
    return settings | {"rounds": rounds, "eval_every": max(1, round(rounds / EVALUATIONS))}


def table(results: Results) -> str:
    """Rounds to the target by H and E, mean over the seeds; with "none" where no run reaches it."""
    head = ["data", "algorithm", "H", "E", "seeds", "rounds to the target"]
    rows = []
    for case in results.where():
        runs = results.rows(case)
        hits = [next((r["round"] for r in run if r[FIELD] >= case["target"]), None) for run in runs]
        found = [hit for hit in hits if hit is not None]
        mean = f"{statistics.mean(found):.4g}" if len(found) == len(hits) else "none"
        rows.append(
            [
                f"{case['dataset']}, {100 * case['target']:g} %",
                NAMES[case["algorithm"]],
                str(case["local_steps"]),
                str(case["edge_rounds"]),
                str(len(runs)),
                mean,
            ]
        )
    return markdown(head, rows)
