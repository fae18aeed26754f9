"""What rounded products of local training cost: final accuracy in bfloat16 and in float32."""

from __future__ import annotations

from experiments.studies import Case, Results
from experiments.tables import table_of
from wirelessfl.results.costs import final_accuracy, spread
from wirelessfl.results.intervals import Effect, difference

EXACT = "float32"


def gain(results: Results, case: Case) -> Effect:
    """Final accuracy of a case minus that in float32, in percentage points, paired by seed."""
    exact = results.where(model=case["model"], precision=EXACT)
    finals = [
        {run.seed: final_accuracy(run.rows) for one in cases for run in results.of(one)}
        for cases in ([case], exact)
    ]
    return difference("", *finals, 0.0)


def _shown(results: Results, case: Case) -> str:
    effect = gain(results, case)
    if case["precision"] == EXACT or len(effect.values) < 2:
        return "-"
    low, high = effect.interval
    return f"{effect.mean:+.2f} ({low:+.2f} to {high:+.2f})"


def table(results: Results) -> str:
    """Final accuracies, and their differences from float32 with 95 % intervals."""
    return table_of(
        results.where(),
        {
            "model": lambda case: case["model"],
            "precision": lambda case: case["precision"],
            "seeds": lambda case: str(len(results.of(case))),
            "final accuracy (%)": lambda case: spread(results.finals(case)),
            "difference (pp)": lambda case: _shown(results, case),
        },
    )
