"""Tables of Figure 7, HIST over the air."""

from __future__ import annotations

import math
from collections.abc import Callable

from experiments.hist.air import (
    BEAMFORMERS,
    LOW_TARGET,
    METHODS,
    label,
    latencies,
    longest,
    mean_error,
)
from experiments.hist.figures import TARGET
from experiments.hist.sizes import round_seconds
from experiments.hist.tables import costs
from experiments.studies import Case, Results
from experiments.tables import table_of
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.costs import accuracies, cost_text, markdown, reached, spread
from wirelessfl.results.selection import UPLINKS


def snr_rows(results: Results) -> str:
    """Figure 7a: accuracy after several rounds, rounds to 75 % and 80 %, transmission error."""

    def lowest(case: Case) -> float:
        return min(as_mean_value(row) for run in results.rows(case) for row in run[-10:])

    return table_of(
        results.where(),
        {
            "uplink": lambda case: UPLINKS[case["uplink"]],
            "method": lambda case: (
                METHODS[case["mask_sizes"]] if case["uplink"] == "aircomp" else "equal sizes"
            ),
            "SNR (dB)": lambda case: (
                f"{case['snr_db']:g}" if case["uplink"] == "aircomp" else "any"
            ),
            "seeds": lambda case: str(len(results.of(case))),
            "accuracy (%) after 5 / 10 / 20 / 30 / 40": lambda case: accuracies(
                results.rows(case), (5, 10, 20, 30, 40)
            ),
            "minimum of last 10 (%)": lambda case: f"{100 * lowest(case):.1f}",
            "rounds to 75 %": lambda case: reached(results.rows(case), 0.75, "round", "d"),
            "rounds to 80 %": lambda case: reached(results.rows(case), 0.8, "round", "d"),
            **_errors(results),
        },
    )


def snr_latencies(results: Results) -> str:
    """Figure 7b: simulated seconds to 75 % and 80 % at every SNR."""
    results = longest(results)
    rows, snrs = [], sorted({case["snr_db"] for case in results.study.cases})
    for target in (LOW_TARGET, TARGET):
        for run, points in latencies(results, target).items():
            seeds = str(max(map(len, points.values())))
            cells = [cost_text(points[snr], ".3g") if snr in points else "not run" for snr in snrs]
            rows.append([run, f"{100 * target:g}", seeds, *cells])
    return markdown(["run", "target (%)", "seeds", *(f"s at {snr:g} dB" for snr in snrs)], rows)


def client_latencies(results: Results) -> str:
    """Figure 7c: seconds per round, and costs to 80 %."""
    return table_of(
        sorted(results.where(), key=lambda case: (label(case), case["clients"])),
        {
            "clients per cell": lambda case: str(case["clients"] // case["cells"]),
            "run": label,
            "seeds": lambda case: str(len(results.of(case))),
            "s per round": lambda case: f"{round_seconds(results, case):.2f}",
            **costs(results, TARGET),
        },
    )


def convention_rows(results: Results) -> str:
    """Figure 7d: effect of convention and beamformer on error and accuracy."""
    goal = f"{100 * LOW_TARGET:g} %"
    return table_of(
        results.where(),
        {
            "convention": lambda case: case["convention"],
            "beamformer": lambda case: BEAMFORMERS[case["beamformer"]],
            "seeds": lambda case: str(len(results.of(case))),
            **_errors(results),
            "accuracy (%) after 10 / 20 / 40": lambda case: accuracies(
                results.rows(case), (10, 20, 40)
            ),
            "final accuracy (%)": lambda case: spread(results.finals(case), 2),
            f"rounds to {goal}": lambda case: reached(results.rows(case), LOW_TARGET, "round", "d"),
            f"s to {goal}": lambda case: reached(
                results.rows(case), LOW_TARGET, "sim_seconds", ".2f"
            ),
        },
    )


def _errors(results: Results) -> dict[str, Callable[[Case], str]]:
    """Columns of errors per element."""

    def text(case: Case, name: str) -> str:
        value = mean_error(results.rows(case), name)
        return "-" if math.isnan(value) else f"{value:.3g}"

    return {
        "error per element, realised": lambda case: text(case, "air_error"),
        "predicted": lambda case: text(case, "air_error_predicted"),
    }
