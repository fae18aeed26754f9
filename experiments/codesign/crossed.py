"""Algorithm x access x schedule in one network: seconds, MiB and joules to the target accuracy."""

from __future__ import annotations

from experiments.codesign.access import NAMES, access_of
from experiments.report import markdown, reached, spread
from experiments.studies import Case, Results
from wirelessfl.results import names

TARGET = 0.8


def run_name(case: Case) -> str:
    """The algorithm, and the masks of HIST if they are optimized."""
    masks = ", optimized masks" * (case["mask_sizes"] == "optimized")
    return names.NAMES[case["algorithm"]] + masks


def table(results: Results) -> str:
    """Costs of the target and final accuracy of each combination."""
    head = ["schedule", "run", "access", "seeds", "s to 80 %", "MiB to 80 %", "J to 80 %"]
    head += ["final accuracy (%)"]
    rows = []
    for case in results.where():
        runs = results.rows(case)
        costs = (
            reached(runs, TARGET, name, ".3g") for name in ("sim_seconds", "uplink_mib", "joules")
        )
        row = [case["schedule"] or "rounds", run_name(case), NAMES[access_of(case.settings)]]
        rows.append([*row, str(len(runs)), *costs, spread(results.finals(case))])
    return markdown(head, rows)
