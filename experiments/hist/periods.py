"""Figure 5: accuracy with several edge rounds E and local steps H, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from experiments.hist.figures import QUANTITIES, SPLITS, TARGET, draw_by_place, draw_cases, facts
from experiments.hist.measures import throughout
from experiments.hist.tables import costs
from experiments.labels import SPREAD, costs_of, data_name, seeds_text
from experiments.studies import Case, Results
from experiments.tables import table_of
from wirelessfl.base.figures.curves import Row, draw_curves, new_figure
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.costs import accuracies, spread
from wirelessfl.results.panels import grid, legend, same_limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS = ("round", "sim_seconds", "joules")
PERIODS = {"edge_rounds": "edge rounds E", "local_steps": "local steps H"}
APART = 0.07
"""Distance of lines at the same place, as a share of the axis, so that dots do not overlap."""
SMOOTH = 5
"""Evaluations that are averaged, because differences of single ones vary by points."""


def fig5(results: Results) -> Figure:
    """Accuracy against global rounds for each E and H, one panel per split."""
    cases = of_length(results, longest=True)
    splits = list(dict.fromkeys(case["split"] for case in cases))
    figure, axes = grid(len(splits))
    for panel, split in zip(axes, splits, strict=True):
        by_period = {period(case): case for case in cases if case["split"] == split}
        draw_cases(panel, results, by_period, "round")
        panel.set_title(SPLITS[split])
    same_limits(axes)
    drawn = [case for case in cases if results.of(case)] or results.where()
    step = f"step size {cases[0]['lr']:g}"
    legend(figure, axes, data_name(drawn), seeds_text(results, drawn, SPREAD), step)
    return figure


def period(case: Case) -> str:
    """Edge rounds and local steps."""
    return f"E = {case['edge_rounds']}, H = {case['local_steps']}"


def of_length(results: Results, *, longest: bool) -> list[Case]:
    """The cases with the most rounds, or with the fewest."""
    rounds = [case["rounds"] for case in results.study.cases]
    length = (max if longest else min)(rounds)
    return [case for case in results.study.cases if case["rounds"] == length]


def periods(results: Results) -> Figure:
    """Rounds, seconds and joules to 80 % against E and against H, one line per split."""
    short = of_length(results, longest=False)
    figure, axes = new_figure(len(COSTS), 1.9, rows=len(PERIODS))
    for row, (varied, name) in enumerate(PERIODS.items()):
        fixed = next(other for other in PERIODS if other != varied)
        least = min(case[fixed] for case in short)
        for column, quantity in enumerate(COSTS):
            lines = {
                line_of(split): {
                    case[varied]: costs_of(results, case, quantity, TARGET)
                    for case in short
                    if (case["split"], case[fixed]) == (split, least) and results.of(case)
                }
                for split in results.values("split")
            }
            panel = axes[row * len(COSTS) + column]
            axis = QUANTITIES[quantity]
            draw_by_place(panel, lines, name, axis, apart=APART)
            panel.set_ylim(bottom=0)
            panel.set_title(f"{fixed[0].upper() if fixed == 'edge_rounds' else 'H'} = {least}")
    for column in range(len(COSTS)):
        same_limits(axes[column :: len(COSTS)])
    legend(figure, axes, *facts(results, [case for case in short if results.of(case)]))
    return figure


def steps(results: Results) -> Figure:
    """Accuracy with the larger minus that with the smaller H, seed by seed, one curve per split."""
    less, more = sorted({case["local_steps"] for case in results.study.cases})
    curves = {}
    for split in results.values("split"):
        pair = [results.where(split=split, local_steps=steps) for steps in (more, less)]
        if all(pair) and (rows := differences(results, pair[0][0], pair[1][0])):
            curves[line_of(split)] = rows
    figure, (panel,) = new_figure(height=2.3)
    if curves:
        draw_curves(panel, curves, "round", legend=False, smooth=SMOOTH)
    panel.axhline(0, color="0.5", linewidth=0.8)
    panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
    panel.set_ylabel(f"accuracy, H = {more}\nminus H = {less} (pp)")
    cases = results.where()
    averaged = f"moving average of {SMOOTH} evaluations"
    legend(figure, [panel], data_name(cases), seeds_text(results, cases, SPREAD), averaged)
    return figure


def line_of(split: str) -> str:
    """The label of a line: all runs are HIST's."""
    return f"HIST, {SPLITS[split]}"


def differences(results: Results, first: Case, second: Case) -> list[list[Row]]:
    """Rows of the seeds of both cases, whose accuracy is that of the first minus the second."""
    others = {run.seed: run.rows for run in results.of(second)}
    return [
        [
            {"round": row["round"], "accuracy": as_mean_value(row) - as_mean_value(other)}
            for row, other in zip(run.rows, others[run.seed], strict=False)
        ]
        for run in results.of(first)
        if run.seed in others
    ]


def table(
    results: Results,
    rounds: Sequence[int] = (20, 60, 100, 200),
    cases_of: Callable[[Results], list[Case]] = Results.where,
) -> str:
    """Accuracy after these global rounds, and costs to 80 %, for each E and H.

    Args:
        results: the runs of the study.
        rounds: the rounds.
        cases_of: chooses the cases; those without runs are left out.
    """
    after = f"accuracy (%) after {' / '.join(map(str, rounds))} global rounds"
    return table_of(
        [case for case in cases_of(results) if results.of(case)],
        {
            "split": lambda case: SPLITS[case["split"]],
            "E": lambda case: str(case["edge_rounds"]),
            "H": lambda case: str(case["local_steps"]),
            "seeds": lambda case: str(len(results.of(case))),
            after: lambda case: accuracies(results.rows(case), rounds),
            "mean accuracy over the rounds (%)": lambda case: spread(
                [throughout(run) for run in results.of(case)]
            ),
            **costs(results, TARGET),
        },
    )
