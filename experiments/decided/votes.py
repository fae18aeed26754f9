"""FedAvg over the air at several SNRs: values against one-bit votes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.decided.conventions import accuracies, last_round
from experiments.labels import data_name, seeds_text
from experiments.studies import Results
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import markdown, spread
from wirelessfl.results.panels import draw_points, grid, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "physical": "values, physical",
    "mmse": "values, mmse",
    "one-bit": "signs of sums, one-bit",
    "majority": "signs by energy, majority",
}
"""Conventions, and their names in table and figure."""


def mean_of(runs: Sequence[StoredRun], field: str) -> float | None:
    """Mean of a field over seeds and rounds; None if no row has it."""
    values = [row[field] for run in runs for row in run.rows if row.get(field) is not None]
    return statistics.mean(values) if values else None


def table(results: Results) -> str:
    """Accuracy of each convention at each SNR, wrong votes, and what a round costs."""
    rounds, snrs = last_round(results), sorted(results.values("snr_db"))
    head = ["convention", "seeds", *(f"accuracy (%) at {snr:g} dB" for snr in snrs)]
    head += [f"wrong votes (%) at {snrs[0]:g} / {snrs[-1]:g} dB", "MiB", "joules"]
    rows = []
    for convention, label in LABELS.items():
        cases = {case["snr_db"]: case for case in results.where(convention=convention)}
        if not cases:
            continue
        runs = {snr: results.of(case) for snr, case in cases.items()}
        wrong = [mean_of(runs.get(snr, []), "air_error_votes") for snr in (snrs[0], snrs[-1])]
        last = [run.rows[-1] for several in runs.values() for run in several]
        rows.append(
            [
                label,
                str(max(len(several) for several in runs.values())),
                *(spread(accuracies(runs[snr], rounds)) if snr in runs else "-" for snr in snrs),
                " / ".join("-" if value is None else f"{100 * value:.2g}" for value in wrong),
                *(
                    f"{statistics.mean(r[name] for r in last):.3g}"
                    for name in ("uplink_mib", "joules")
                ),
            ]
        )
    return markdown(head, rows)


def draw(results: Results) -> Figure:
    """Accuracy against the SNR, one line per convention."""
    rounds, snrs = last_round(results), sorted(results.values("snr_db"))
    picture, (panel,) = grid(1, height=2.6)
    for place, (convention, label) in enumerate(LABELS.items()):
        points = {
            case["snr_db"]: accuracies(results.of(case), rounds)
            for case in results.where(convention=convention)
        }
        draw_points(panel, dict(sorted(points.items())), label, place, shift=0.35 * (place - 1.5))
    panel.set_xticks(snrs)
    panel.set_xlabel("SNR (dB)")
    panel.set_ylabel(f"accuracy after {rounds} rounds (%)")
    panel.margins(x=0.08)
    cases = results.where()
    facts = [data_name(cases), "FedAvg, 4 antennas"]
    legend(picture, [panel], *facts, seeds_text(results, cases))
    return picture
