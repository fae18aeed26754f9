"""Who takes part: accuracy, seconds and joules of the selections of clients."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING

from experiments.labels import costs_of, data_name, seeds_text
from experiments.studies import Case, Results
from experiments.tables import table_of
from wirelessfl.base.figures.curves import draw_bars
from wirelessfl.results.costs import reached, spread
from wirelessfl.results.panels import draw_points, grid, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGET = 0.75
TESTS = 3
"""Evaluations that are averaged, as single ones vary by points."""
AXES = (("sim_seconds", "simulated seconds"), ("joules", "J per client"))


def table(results: Results) -> str:
    """Cost of a round, final accuracy, and costs to the target."""
    goal = f"{100 * TARGET:g} %, mean of {TESTS} evaluations"

    def ratio(case: Case, field: str, other: str, form: str) -> str:
        ends = [rows[-1] for rows in results.rows(case)]
        return format(statistics.mean(end[field] / end[other] for end in ends), form)

    def cost(field: str, form: str) -> Callable[[Case], str]:
        return lambda case: reached(results.rows(case), TARGET, field, form, TESTS)

    return table_of(
        results.where(),
        {
            "selection": lambda case: case["select"],
            "seeds": lambda case: str(len(results.of(case))),
            "s per round": lambda case: ratio(case, "sim_seconds", "round", ".2f"),
            "J per client and round": lambda case: ratio(case, "joules", "round", ".3f"),
            "J, largest client / mean": lambda case: ratio(case, "joules_max", "joules", ".1f"),
            "final accuracy (%)": lambda case: spread(results.finals(case)),
            f"rounds to {goal}": cost("round", "d"),
            f"s to {goal}": cost("sim_seconds", ".1f"),
            f"J per client to {goal}": cost("joules", ".2f"),
        },
    )


def draw(results: Results) -> Figure:
    """Final accuracy, and seconds and joules to the target, by selection."""
    cases = results.where()
    goal = f"to {100 * TARGET:g} %"
    figure, axes = grid(3, height=2.4)
    labels = [str(case["select"]) for case in results.study.cases]
    finals = {labels.index(str(case["select"])): results.finals(case) for case in cases}
    draw_points(axes[0], finals, None, 0, line=False)
    axes[0].set_xticks(range(len(labels)), labels)
    axes[0].set_ylabel("final accuracy (%)")
    for panel, (field, text) in zip(axes[1:], AXES, strict=True):
        spent = {
            str(case["select"]): costs_of(results, case, field, TARGET, TESTS) for case in cases
        }
        draw_bars(panel, {"": spent}, f"{text} {goal}", labels)
    for panel in axes:
        panel.tick_params(axis="x", labelrotation=40)
    shares = f"{cases[0]['clients_per_round']} of {cases[0]['clients']} clients per round"
    about = seeds_text(results, cases), shares, f"target: mean of {TESTS} evaluations"
    legend(figure, axes, data_name(cases), *about)
    return figure
