"""HIST over the air at several SNRs: conventions of power and noise, and error-free OMA."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.decided.oma import beside
from experiments.evidence import Evidence
from experiments.labels import data_name
from experiments.studies import Case, Results
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import markdown, spread
from wirelessfl.results.panels import draw_points, grid, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OMA, PUBLISHED = "OMA", "published"
LAST = 5
"""Number of evaluations, up to the last round of the study, whose mean accuracy is shown."""
LABELS = (OMA, PUBLISHED, "physical", "physical, truncated", "mmse", "mmse, unbiased")
Runs = dict[str, dict[float, list[StoredRun]]]
"""By convention and SNR, the runs of all seeds."""


def label(case: Case) -> str:
    """The name of a convention in tables and figures."""
    marks = (
        ", truncated" * (case["threshold"] is not None),
        ", unbiased" * bool(case["unbiased_sum"]),
    )
    return case["convention"] + "".join(marks)


def runs_of(results: Results, figure: Results) -> Runs:
    """The runs of the study, and those of HIST's Figure 7a with its seeds; OMA at all its SNRs.

    Args:
        results: runs of this study.
        figure: runs of Figure 7a of HIST: the published convention, and OMA.
    """
    snrs = sorted({case["snr_db"] for case in results.study.cases})
    seeds = {seed for case in results.study.cases for seed in case.seeds}
    runs: Runs = {name: {} for name in LABELS}
    for case in figure.where(mask_sizes=None):
        same = [run for run in figure.of(case) if run.seed in seeds]
        if case["uplink"] == "tdma":
            runs[OMA] = dict.fromkeys(snrs, same)
        elif case["snr_db"] in snrs:
            runs[PUBLISHED][case["snr_db"]] = same
    for case in results.where():
        runs[label(case)][case["snr_db"]] = results.of(case)
    return runs


def last_round(results: Results) -> int:
    """Number of rounds of the study; longer runs count up to there."""
    return int(results.study.cases[0]["rounds"])


def accuracies(runs: Sequence[StoredRun], rounds: int) -> list[float]:
    """Mean accuracy of each run in the last rounds up to ``rounds``, in percent."""
    return [
        100
        * statistics.mean(
            as_mean_value(row) for row in run.rows if max(rounds - LAST, 0) < row["round"] <= rounds
        )
        for run in runs
    ]


def errors(runs: Sequence[StoredRun], rounds: int) -> float | None:
    """Mean error per element over seeds and rounds; None over OMA."""
    means = [
        row["air_error"]
        for run in runs
        for row in run.rows
        if row["round"] <= rounds and row.get("air_error") is not None
    ]
    return statistics.mean(means) if means else None


def table(results: Results) -> str:
    """Accuracy of each convention at each SNR, and its error per element."""
    return _table(results, beside(results, "fig7a"))


def _table(results: Results, figure: Results) -> str:
    rounds, by_label = last_round(results), runs_of(results, figure)
    snrs = sorted({case["snr_db"] for case in results.study.cases})
    head = ["convention", "seeds", *(f"accuracy (%) at {snr:g} dB" for snr in snrs)]
    head += [f"error per element at {snrs[0]:g} / {snrs[-1]:g} dB"]
    rows = []
    for name, by_snr in by_label.items():
        if not by_snr:
            continue
        counts = [len(runs) for runs in by_snr.values()]
        seeds = (
            str(max(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        )
        shown = [
            errors(by_snr[snr], rounds) if snr in by_snr else None for snr in (snrs[0], snrs[-1])
        ]
        rows.append(
            [
                name,
                seeds,
                *(
                    spread(accuracies(by_snr[snr], rounds)) if snr in by_snr else "not run"
                    for snr in snrs
                ),
                " / ".join("-" if value is None else f"{value:.2g}" for value in shown),
            ]
        )
    return markdown(head, rows)


def draw(results: Results) -> Figure:
    """Accuracy against the SNR, one line per convention; OMA does not depend on it."""
    return _draw(results, beside(results, "fig7a"))


def _draw(results: Results, figure: Results) -> Figure:
    rounds, runs = last_round(results), runs_of(results, figure)
    snrs = sorted({case["snr_db"] for case in results.study.cases})
    picture, (panel,) = grid(1, height=2.9)
    for place, (name, by_snr) in enumerate(runs.items()):
        if by_snr:
            shift = 0.35 * (place - 2)
            points = {snr: accuracies(by_snr[snr], rounds) for snr in snrs if snr in by_snr}
            draw_points(panel, points, name, place, shift=shift)
    panel.set_xticks(snrs)
    panel.set_xlabel("SNR (dB)")
    panel.set_ylabel(f"accuracy after {rounds} rounds (%)")
    panel.margins(x=0.08)
    legend(
        picture,
        [panel],
        data_name(results.study.cases),
        "HIST, N = 4",
        f"mean of {LAST} evaluations",
    )
    return picture


def excess_db(evidence: Evidence) -> float:
    """How much noisier the published convention is than the physical one, in dB.

    From the errors of Figure 7d of HIST at -10 dB with the default beamformer, of the seeds that
    both have.
    """
    figure = evidence.study("fig7d")
    by_seed: dict[str, dict[int, float]] = {}
    for case in figure.where(beamformer="anneal"):
        mine = by_seed.setdefault(case["convention"], {})
        for run in figure.of(case):
            mine[run.seed] = statistics.mean(row["air_error"] for row in run.rows[1:])
    pairs = [
        (by_seed["published"][seed], error)
        for seed, error in by_seed.get("physical", {}).items()
        if seed in by_seed.get("published", {})
    ]
    return statistics.mean(10 * math.log10(more / less) for more, less in pairs)
