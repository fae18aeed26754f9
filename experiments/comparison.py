"""Table and figure of a study that varies settings: one row and one point per case."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from experiments.labels import AXES, SYMBOLS, WORDS, costs_of, data_name, said, seeds_text, shown
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import LABELS, NOT_RUN, Against, looks
from wirelessfl.results.costs import markdown, rank_of, reached, spread, with_edge
from wirelessfl.results.panels import draw_lines, grid, legend, same_limits
from wirelessfl.results.selection import NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS: dict[Against, str] = {
    "round": "global rounds to the target",
    "uplink_mib": "uplink traffic per client\nto the target (MiB)",
    "sim_seconds": "simulated time\nto the target (s)",
}


def varied(cases: Iterable[Case]) -> list[str]:
    """Settings with different values in these cases, except the algorithm."""
    choices = {n: {str(c[n]) for c in cases if c[n] is not None} for n in WORDS if n != "algorithm"}
    return [name for name, values in choices.items() if len(values) > 1]


def table(
    results: Results,
    target: float,
    quantities: Sequence[Against] = ("round",),
    best: str | None = None,
    tests: int = 1,
) -> str:
    """One row per case: its settings, final accuracy, and costs until the target.

    Args:
        results: the runs of the study.
        target: accuracy in [0, 1].
        quantities: the costs, fields of rows.
        best: a setting of which only the best value is shown: that of the highest final accuracy,
            or if ``tests`` is above 1, of the lowest cost in the first column. Only values with the
            most finished seeds are compared, because single runs vary. It is marked if it is the
            smallest or the largest one with runs.
        tests: number of tests that are averaged, see ``cost_to``.
    """
    names = [name for name in varied(results.study.cases) if name != best]
    head = ["method", *(WORDS[name] for name in names)]
    head += [] if best is None else [f"best {WORDS[best]}", "of"]
    head += ["seeds", "final accuracy (%)"]
    averaged = f", mean of {tests} evaluations" * (tests > 1)
    head += [f"{LABELS[quantity]} to {100 * target:g} %{averaged}" for quantity in quantities]
    groups: dict[tuple[Any, ...], list[Case]] = {}
    for case in results.where():
        row = NAMES[case["algorithm"]], *(shown(case, name) for name in names)
        groups.setdefault(row if best else (*row, len(groups)), []).append(case)
    rows = []
    for key, cases in groups.items():
        tried = most_finished(results, cases)
        if tests > 1:
            case = min(tried, key=lambda one: cheapness(results, one, quantities[0], target, tests))
        else:
            case = max(tried, key=lambda one: rank_of(results.finals(one)))
        row = [*key[: len(names) + 1]]
        if best is not None:
            text = with_edge(shown(case, best), case[best], [one[best] for one in cases])
            row += [text, str(len(tried))]
        row += [str(len(results.of(case))), spread(results.finals(case))]
        seeds = results.rows(case)
        row += [
            reached(seeds, target, one, "d" if one == "round" else ".1f", tests)
            for one in quantities
        ]
        rows.append(row)
    return markdown(head, rows)


def most_finished(results: Results, cases: Sequence[Case]) -> list[Case]:
    """The cases with the most finished seeds, which alone are compared: single runs vary."""
    most = max((len(results.of(case)) for case in cases), default=0)
    return [case for case in cases if len(results.of(case)) == most]


def cheapness(
    results: Results, case: Case, quantity: Against, target: float, tests: int = 1
) -> tuple[int, float]:
    """A key that orders cases by the cost until the target: seeds without it, then the mean."""
    costs = results.costs(case, quantity, target, tests)
    reached = [cost for cost in costs if cost is not None]
    return len(costs) - len(reached), statistics.mean(reached) if reached else 0.0


def against(
    results: Results,
    setting: str,
    panel: str | tuple[str, ...] | None = None,
    quantity: Against | None = None,
    target: float = 0.0,
    tests: int = 1,
) -> Figure:
    """A figure of final accuracies, or of costs until a target, against a setting.

    One line per method and per value of all other settings that the study varies.

    Args:
        results: the runs of the study.
        setting: setting on the horizontal axis.
        panel: setting with one panel per value, or several settings; None for one panel. A case
            without one of these settings is in the panels of all its values.
        quantity: cost until the target, a field of rows; None for the final accuracy.
        target: accuracy in [0, 1].
        tests: number of tests that are averaged, see ``cost_to``.
    """
    facets = (panel,) if isinstance(panel, str) else panel or ()
    study = results.study

    def values_of(case: Case) -> list[float | None] | None:
        if not results.of(case):
            return None
        if quantity is None:
            return [*results.finals(case)]
        return costs_of(results, case, quantity, target, tests)

    panels = _panels(study.cases, facets)
    others = [one for one in varied(study.cases) if one not in (setting, *facets)]
    method = "algorithm" not in facets
    labels = list(dict.fromkeys(_label(c, others, method) for c in study.cases))
    by_label = looks(labels)
    figure, axes = grid(len(panels))
    for axis, values in zip(axes, panels, strict=True):
        cases = [
            case
            for case in study.cases
            if all(case[f] in (None, v) for f, v in zip(facets, values, strict=True))
        ]
        lines: dict[str, list[tuple[Any, str, list[float | None] | None]]]
        lines = {text: [] for text in labels}
        for case in cases:
            point = case[setting], _tick(case, setting), values_of(case)
            lines[_label(case, others, method)].append(point)
        draw_lines(axis, lines, by_label)
        axis.set_xlabel(AXES.get(setting, WORDS[setting]))
        axis.set_ylabel("final accuracy (%)" if quantity is None else COSTS[quantity])
        if facets:
            one = max(cases, key=lambda case: sum(case[f] is not None for f in facets))
            axis.set_title("\n".join(said(one, f) for f in facets))
        axis.margins(y=0.08)
    filled = [axis for axis in axes if axis.lines]
    same_limits(filled)
    for axis in axes:
        if axis not in filled:
            axis.set_ylim(filled[0].get_ylim() if filled else (0, 1))
            axis.text(0.5, 0.5, NOT_RUN, transform=axis.transAxes, ha="center", style="italic")
    averaged = f", mean of {tests} evaluations" * (tests > 1)
    goal = "" if quantity is None else f"target {100 * target:g} %{averaged}"
    seeds = seeds_text(results, results.where())
    symbols = [f"{WORDS[s]}: {SYMBOLS[s]}" for s in (*others, *facets) if s in SYMBOLS]
    legend(figure, axes, data_name(study.cases), goal, seeds, *symbols)
    return figure


def _panels(cases: Sequence[Case], facets: Sequence[str]) -> list[tuple[Any, ...]]:
    """Values of the settings ``facets`` that have panels; single numbers in ascending order."""
    every = dict.fromkeys(tuple(case[f] for f in facets) for case in cases)
    in_order = itertools.product(*(dict.fromkeys(column) for column in zip(*every, strict=True)))
    complete = [values for values in in_order if values in every and None not in values]
    complete = complete or list(every)
    numbers = all(isinstance(value, int | float) for values in complete for value in values)
    return sorted(complete) if numbers else complete


def _label(case: Case, others: Sequence[str], method: bool) -> str:
    words = [said(case, one) for one in others if case[one] is not None]
    return ", ".join([NAMES[case["algorithm"]]] * (method or not words) + words)


def _tick(case: Case, x: str) -> str:
    """The tick label of a case; cases that have the same one are at the same place."""
    text = shown(case, x)
    return "none" if text == "-" else text
