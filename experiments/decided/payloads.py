"""What is sent: accuracy, MiB and seconds of uploads of few bits."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from experiments.labels import data_name, seeds_text
from experiments.studies import Case, Results
from experiments.tables import table_of
from wirelessfl.base.figures.curves import draw_curves
from wirelessfl.results.costs import reached, spread
from wirelessfl.results.panels import grid, legend, same_limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGET = 0.75
TESTS = 3
"""Evaluations that are averaged, as single ones vary by points."""
AXES = (("uplink_mib", "uplink traffic per client (MiB)"), ("sim_seconds", "simulated seconds"))


def label(case: Case) -> str:
    """What a client sends, in a few words."""
    name = case["uplink_compression"]
    sent = {
        "none": "32 bits",
        "quantisation": f"q = {case['uplink_compression_bits']}",
        "top-k": f"k = {case['uplink_compression_keep']}",
        "sign": "sign",
    }[name]
    return f"{sent}, feedback" if case["error_feedback"] else sent


def bits_per_element(results: Results, case: Case) -> float:
    """Bits of an upload per element of the model, from the traffic of the uncompressed runs."""
    (whole,) = results.where(uplink_compression="none")
    ends = [
        statistics.mean(rows[-1]["uplink_mib"] for rows in results.rows(one))
        for one in (case, whole)
    ]
    return 32 * ends[0] / ends[1]


def table(results: Results) -> str:
    """Bits, final accuracy, and costs to the target."""
    goal = f"{100 * TARGET:g} %, mean of {TESTS} evaluations"
    return table_of(
        results.where(),
        {
            "sent": label,
            "seeds": lambda case: str(len(results.of(case))),
            "bits per element": lambda case: f"{bits_per_element(results, case):.3g}",
            "final accuracy (%)": lambda case: spread(results.finals(case)),
            f"rounds to {goal}": lambda case: reached(
                results.rows(case), TARGET, "round", "d", TESTS
            ),
            f"MiB per client to {goal}": lambda case: reached(
                results.rows(case), TARGET, "uplink_mib", ".3g", TESTS
            ),
            f"s to {goal}": lambda case: reached(
                results.rows(case), TARGET, "sim_seconds", ".3g", TESTS
            ),
        },
    )


def draw(results: Results) -> Figure:
    """Accuracy against MiB and seconds, of quantisation and of top-k; signs are in the table."""
    cases = [case for case in results.where() if case["uplink_compression"] != "sign"]
    figure, axes = grid(4, height=2.4)
    rows = ("quantisation", axes[:2]), ("top-k", axes[2:])
    for method, panels in rows:
        shown = [case for case in cases if case["uplink_compression"] in ("none", method)]
        runs = {label(case): results.rows(case) for case in shown}
        for panel, (field, text) in zip(panels, AXES, strict=True):
            draw_curves(panel, runs, field, smooth=TESTS, floor=0.4)
            panel.set_xscale("log")
            panel.set_xlabel(text)
            panel.get_legend().set_loc("upper left")
    same_limits(axes)
    for place in (0, 1):
        same_limits(axes[place::2], x=True, y=False)
    shares = f"{cases[0]['clients_per_round']} of {cases[0]['clients']} clients per round"
    legend(figure, (), data_name(cases), seeds_text(results, cases), shares)
    return figure
