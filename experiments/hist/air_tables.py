"""Tables of Figure 7, HIST over the air."""

from __future__ import annotations

import math
import statistics
from typing import Any

from experiments.hist.air import BEAMFORMERS, LOW_TARGET, label, latencies, mean_error
from experiments.hist.figures import TARGET
from experiments.hist.tables import costs_cells, costs_head
from experiments.studies import Results
from wirelessfl.divergence import as_mean_value
from wirelessfl.results.names import UPLINKS
from wirelessfl.results.report import accuracies, cost_text, markdown, reached, spread


def snr_rows(results: Results) -> str:
    """Figure 7a: accuracy after several rounds, rounds to 75 % and 80 %, transmission error."""
    head = [
        "uplink",
        "SNR (dB)",
        "seeds",
        "accuracy (%) after 5 / 10 / 20 / 30 / 40",
        "minimum of last 10 (%)",
    ]
    head += ["rounds to 75 %", "rounds to 80 %"]
    head += ["error per element, realised", "predicted"]
    rows = []
    for case in results.where():
        seeds = results.rows(case)
        last = min(as_mean_value(row) for run in seeds for row in run[-10:])
        rows.append(
            [
                UPLINKS[case["uplink"]],
                f"{case['snr_db']:g}" if case["uplink"] == "aircomp" else "any",
                str(len(seeds)),
                accuracies(seeds, (5, 10, 20, 30, 40)),
                f"{100 * last:.1f}",
                *(reached(seeds, at, "round", "d") for at in (0.75, 0.8)),
                *(_error(seeds, name) for name in ("air_error", "air_error_predicted")),
            ]
        )
    return markdown(head, rows)


def snr_latencies(results: Results) -> str:
    """Figure 7b: simulated seconds to 75 % and 80 % at every SNR."""
    rows, snrs = [], sorted({case["snr_db"] for case in results.study.cases})
    for target in (LOW_TARGET, TARGET):
        for run, points in latencies(results, target).items():
            seeds = str(max(map(len, points.values())))
            cells = [cost_text(points[snr], ".3g") if snr in points else "not run" for snr in snrs]
            rows.append([run, f"{100 * target:g}", seeds, *cells])
    return markdown(["run", "target (%)", "seeds", *(f"s at {snr:g} dB" for snr in snrs)], rows)


def client_latencies(results: Results) -> str:
    """Figure 7c: seconds per round, and costs to 80 %."""
    head = ["clients per cell", "run", "seeds", "s per round", *costs_head(TARGET)]
    rows = []
    for case in sorted(results.where(), key=lambda case: (label(case), case["clients"])):
        seeds = results.rows(case)
        second = statistics.mean(run[-1]["sim_seconds"] / run[-1]["round"] for run in seeds)
        each, count = str(case["clients"] // case["cells"]), str(len(seeds))
        costs = costs_cells(results, case, TARGET)
        rows.append([each, label(case), count, f"{second:.2f}", *costs])
    return markdown(head, rows)


def convention_rows(results: Results) -> str:
    """Figure 7d: effect of convention and beamformer on error and accuracy."""
    head = ["convention", "beamformer", "seeds", "error per element, realised", "predicted"]
    goal = f"{100 * LOW_TARGET:g} %"
    head += ["accuracy (%) after 10 / 20 / 40", "final accuracy (%)"]
    head += [f"rounds to {goal}", f"s to {goal}"]
    return markdown(
        head,
        [
            [
                case["convention"],
                BEAMFORMERS[case["beamformer"]],
                str(len(results.of(case))),
                *(_error(results.rows(case), n) for n in ("air_error", "air_error_predicted")),
                accuracies(results.rows(case), (10, 20, 40)),
                spread(results.finals(case), 2),
                reached(results.rows(case), LOW_TARGET, "round", "d"),
                reached(results.rows(case), LOW_TARGET, "sim_seconds", ".2f"),
            ]
            for case in results.where()
        ],
    )


def _error(seeds: list[list[dict[str, Any]]], name: str) -> str:
    value = mean_error(seeds, name)
    return "-" if math.isnan(value) else f"{value:.3g}"
