"""FAdamGC's Figures 2 to 9, Table 2 as points, and runs that collapse, from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.fadamgc.methods import METHODS
from experiments.fadamgc.tables import TARGETS, curves_of, fastest, to_target
from experiments.labels import SPREAD, costs_of, data_name, seeds_text, span
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import (
    colour_of,
    draw_curves,
    line_look,
    log_ticks,
    new_figure,
    whole_ticks,
)
from wirelessfl.results.costs import EDGE, at_edge
from wirelessfl.results.panels import draw_points, legend
from wirelessfl.results.selection import DATA, NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXIS_LABELS = {"round": "rounds to the target", "sim_seconds": "simulated time to target (s)"}
SHORT = {"round": "rounds", "sim_seconds": "simulated time (s)"}
COLLAPSED = 0.5
"""A run collapsed if its final accuracy is below this part of the target that it had reached."""
SMOOTH = 3
"""Evaluations in the mean of a point of a curve: the accuracy varies by several pp between them."""
ROOM = 0.6
"""Vertical room of the seeds of a case, of 1 between cases."""


def of_methods(
    results: Results,
    quantities: Sequence[str] = tuple(AXIS_LABELS),
    target: float | None = None,
    *,
    searched: bool = False,
) -> Figure:
    """Table 2: costs until the target of all methods, each with its fastest step sizes.

    Args:
        results: the runs of the study.
        quantities: the costs, one column of panels each; there is a row for each data set and
            number of local steps.
        target: accuracy in [0, 1]; None for those of the data sets.
        searched: whether the study has a grid of step sizes. Then methods whose fastest one is at
            its edge are marked.
    """
    rows = list(dict.fromkeys((c["dataset"], c["local_steps"]) for c in results.where()))
    methods = [method for method in METHODS if results.where(algorithm=method)]
    edges: set[str] = set()
    figure, axes = new_figure(len(quantities), height=1.9, rows=len(rows))
    for place, (dataset, steps) in enumerate(rows):
        cases = fastest(results, results.where(dataset=dataset, local_steps=steps), target)
        edges.update(c["algorithm"] for c in cases if searched and _at_edge(results, c))
        goal = target or TARGETS[dataset]
        seeds = span(len(results.of(case)) for case in cases)
        for column, quantity in enumerate(quantities):
            panel = axes[place * len(quantities) + column]
            for case in cases:
                number = METHODS.index(case["algorithm"])
                ends = costs_of(results, case, quantity, goal)
                points = {float(methods.index(case["algorithm"])): ends}
                look = line_look(number, case["algorithm"])
                draw_points(panel, points, None, number, line=False, look=look)
            panel.set_xticks(range(len(methods)), [""] * len(methods))
            panel.set_xlim(-0.5, len(methods) - 0.5)
            panel.set_ylim(0, 1.1 * panel.get_ylim()[1])
            panel.set_ylabel(SHORT[quantity])
            panel.set_title(f"{DATA[dataset]} to {100 * goal:g} %, K = {steps}, n = {seeds}")
    for panel in axes[-len(quantities) :]:
        panel.set_xticklabels([NAMES[m] + "*" * (m in edges) for m in methods], rotation=30)
    notes = ["each method with its fastest step sizes; mean over n seeds"]
    notes += [f"*: {EDGE}"] * bool(edges)
    legend(figure, axes, *notes)
    return figure


def curves(results: Results, setting: str) -> Figure:
    """Figures 2 and 5 to 8: accuracy of all methods against rounds and against simulated time.

    Each method has its fastest step sizes, see ``fastest``.

    Args:
        results: the runs of the study.
        setting: name of a setting; one row of panels for each of its values.
    """
    values = results.values(setting)
    chosen: list[Case] = []
    figure, axes = new_figure(2, height=1.9, rows=len(values))
    order = [NAMES[method] for method in METHODS]
    for place, value in enumerate(values):
        cases = curves_of(results, **{setting: value})
        chosen += cases
        rows = {NAMES[case["algorithm"]]: results.rows(case) for case in cases}
        pair = axes[2 * place : 2 * place + 2]
        for panel, quantity in zip(pair, AXIS_LABELS, strict=True):
            draw_curves(panel, rows, quantity, legend=False, styles=order, smooth=SMOOTH)
            panel.set_title(f"{DATA[cases[0]['dataset']]}, {_named(cases[0], setting)}")
    facts = [f"step sizes: fewest rounds to the target; moving average of {SMOOTH} evaluations"]
    legend(figure, axes, *facts, seeds_text(results, chosen, SPREAD))
    return figure


def _named(case: Case, setting: str) -> str:
    steps = f"K = {case['local_steps']}"
    return f"{steps}, S = {case[setting]}" if setting == "clients_per_round" else steps


def _at_edge(results: Results, case: Case) -> bool:
    """Whether a step size of a case is the smallest or largest one of its method with runs."""
    tried = results.where(algorithm=case["algorithm"], dataset=case["dataset"])
    return any(at_edge(case[one], [c[one] for c in tried]) for one in ("lr", "server_lr"))


def collapses(results: Results, target: float) -> Figure:
    """Rounds until the target by method, step sizes and epsilon, one marker per seed.

    Seeds whose accuracy collapses afterwards are crosses, and those that do not reach the target
    are arrows at the end of their runs.
    """
    cases = sorted(results.where(), key=lambda case: METHODS.index(case["algorithm"]))
    figure, (panel,) = new_figure(height=0.9 + 0.25 * len(cases))
    for place, case in enumerate(cases):
        colour = colour_of(case["algorithm"])
        seeds = list(
            zip(
                results.rows(case),
                to_target(results, case, target=target),
                results.finals(case),
                strict=True,
            )
        )
        for number, (rows, cost, final) in enumerate(seeds):
            kept = final >= 100 * COLLAPSED * target  # not of a run that diverged: nan
            collapsed = cost is not None and not kept
            marker = ">" if cost is None else "x" if collapsed else "o"
            x = rows[-1]["round"] if cost is None else cost
            y = place + ROOM * ((number + 0.5) / len(seeds) - 0.5)
            panel.plot(x, y, marker, color=colour, markersize=4.5 if collapsed else 3)
    panel.set_yticks(range(len(cases)), [_described(case) for case in cases])
    panel.set_ylim(len(cases) - 0.5, -0.5)
    panel.set_xscale("log")
    log_ticks(panel.xaxis)
    panel.minorticks_off()
    panel.set_xlabel(f"rounds to {100 * target:g} %")
    crosses = (
        "numbers: step sizes of clients / server; markers: seeds; "
        "cross: the accuracy collapses afterwards, or the run diverges"
    )
    legend(figure, [panel], data_name(cases), crosses)
    return figure


def _described(case: Case) -> str:
    eps = "" if case["algorithm"] == "fadamgc" else f", ε = {case['eps']:g}"
    return f"{NAMES[case['algorithm']]}, {case['lr']:g} / {case['server_lr']:g}{eps}"


def _facts(cases: list[Case], target: float | None) -> list[str]:
    sets = dict.fromkeys(case["dataset"] for case in cases)
    targets = [
        f"target {100 * (target or TARGETS[one]):g} %"
        + (f" ({DATA[one]})" if len(sets) > 1 else "")
        for one in sets
    ]
    return [data_name(cases), ", ".join(targets)]


def costs(
    results: Results, setting: str, label: str, tests: int = 1, target: float | None = None
) -> Figure:
    """Figures 3, 4 and 9: rounds and seconds to the target against ``setting``, a line per method.

    Args:
        results: the runs of the study.
        setting: name of the setting.
        label: label of the horizontal axis.
        tests: number of tests that are averaged, see ``cost_to``.
        target: accuracy in [0, 1]; None for that of the data set.
    """
    figure, axes = new_figure(columns=2, height=2.6)
    cases = results.where()
    algorithms = {case["algorithm"] for case in results.study.cases}
    methods = [method for method in METHODS if method in algorithms]
    for panel, quantity in zip(axes, AXIS_LABELS, strict=True):
        for method in methods:
            points = {
                float(case[setting]): costs_of(
                    results, case, quantity, target or TARGETS[case["dataset"]], tests
                )
                or None
                for case in results.study.cases
                if case["algorithm"] == method and case[setting] is not None
            }
            draw_points(panel, points, NAMES[method], METHODS.index(method))
        if setting != "alpha":
            whole_ticks(panel)
        panel.set_xlabel(label)
        panel.set_ylabel(AXIS_LABELS[quantity])
        panel.set_ylim(0, 1.06 * panel.get_ylim()[1])
    averaged = f", mean of {tests} evaluations" * (tests > 1)
    data, goal = _facts(cases, target)
    facts = [data, f"{goal}{averaged}", f"K = {_steps(cases)} local steps"]
    legend(figure, axes, *facts, seeds_text(results, cases))
    return figure


def _steps(cases: list[Case]) -> str:
    return " and ".join(map(str, sorted({case["local_steps"] for case in cases})))
