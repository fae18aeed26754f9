"""Who takes part: accuracy per round, per second and per joule of the selections of clients."""

from __future__ import annotations

import statistics
from pathlib import Path

from experiments.look import data_name, save, seeds_text
from experiments.report import markdown, reached, spread
from experiments.studies import Results
from wirelessfl.figures import draw_curves
from wirelessfl.results.panels import grid, legend, same_limits

TARGET = 0.75
TESTS = 3
"""Tests that are averaged, as single ones vary by points."""
AXES = (
    ("round", "global round"),
    ("sim_seconds", "simulated time (s)"),
    ("joules", "J per client"),
)


def table(results: Results) -> str:
    """Cost of a round, final accuracy, and costs to the target."""
    goal = f"{100 * TARGET:g} %"
    head = [
        "selection",
        "seeds",
        "s per round",
        "J per client and round",
        "J, largest client / mean",
    ]
    head += ["final accuracy (%)"]
    goal += f", mean of {TESTS} tests"
    head += [f"rounds to {goal}", f"s to {goal}", f"J per client to {goal}"]
    rows = []
    for case in results.where():
        seeds = results.rows(case)
        ends = [run[-1] for run in seeds]
        rows.append(
            [
                case["select"],
                str(len(seeds)),
                f"{statistics.mean(end['sim_seconds'] / end['round'] for end in ends):.2f}",
                f"{statistics.mean(end['joules'] / end['round'] for end in ends):.3f}",
                f"{statistics.mean(end['joules_max'] / end['joules'] for end in ends):.1f}",
                spread(results.finals(case)),
                reached(seeds, TARGET, "round", "d", TESTS),
                reached(seeds, TARGET, "sim_seconds", tests=TESTS),
                reached(seeds, TARGET, "joules", ".2f", TESTS),
            ]
        )
    return markdown(head, rows)


def draw(results: Results, out: Path) -> list[Path]:
    """Accuracy against rounds, simulated seconds and joules, one curve per selection."""
    cases = results.where()
    labels = [str(case["select"]) for case in results.study.cases]
    figure, axes = grid(len(AXES))
    for panel, (field, text) in zip(axes, AXES, strict=True):
        curves = {
            str(case["select"]): [
                [row | {"sim_seconds": row[field]} for row in rows] for rows in results.rows(case)
            ]
            for case in cases
        }
        draw_curves(
            panel,
            curves,
            "sim_seconds",
            target=TARGET,
            common=True,
            legend=False,
            styles=labels,
            smooth=TESTS,
        )
        panel.set_xlabel(text)
    same_limits(axes)
    legend(
        figure,
        axes,
        data_name(cases),
        seeds_text(results, cases),
        "10 of 60 clients per round",
        f"means of {TESTS} tests",
    )
    return save(figure, results, out / "selection")
