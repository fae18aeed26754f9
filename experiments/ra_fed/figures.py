"""Figures of submodel training, drawn from the rows of finished runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.look import data_name, save, seeds_text
from experiments.ra_fed.measures import SAME, in_order, panels
from experiments.ra_fed.methods import (
    METHODS,
    MIXED,
    OTHERS,
    OURS,
    REFERENCE,
    case_order,
    name_of,
    setting_of,
    share,
)
from experiments.studies import Case, Results
from wirelessfl.divergence import counted
from wirelessfl.figures import COLOURS, DASHES, NOT_RUN, draw_curves, mark, new_figure, style
from wirelessfl.results.names import NAMES
from wirelessfl.results.panels import grid, legend, same_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACCURACY = "final test accuracy (%)"
SHIFT = 0.07
"""Horizontal offset between methods, so that markers and error bars do not overlap."""
MARKS = ("s", "^", "v", "o", "D")
LINES = {
    name: {"color": COLOURS[i], "linestyle": DASHES[i % len(DASHES)], "marker": MARKS[i]}
    for i, name in enumerate(METHODS)
}


def widths(results: Results, out: Path) -> list[Path]:
    """Accuracy against the clients' width ratio, one file per data set and model."""
    groups: dict[str, list[list[Case]]] = {}
    for cases in panels(results).values():
        groups.setdefault(f"{cases[0]['dataset']}-{cases[0]['model']}", []).append(cases)
    files = []
    for place, (name, group) in enumerate(groups.items()):
        figure, axes = grid(len(group), height=2.7)
        for panel, cases in zip(axes, group, strict=True):
            shares = _places(cases)
            same = [c for c in results.study.cases if all(c[k] == cases[0][k] for k in SAME)]
            _against(panel, results, cases, share, shares, _unordered(shares), same)
            panel.set_xlabel("client width ratio")
            panel.set_title(setting_of(cases[0]))
        same_limits(axes)
        shown = [case for cases in group for case in cases]
        legend(figure, axes, _seeds(results, shown))
        files += save(figure, results, out / (f"widths-{name}" if place else "widths"))
    return files


def heterogeneity(results: Results, out: Path) -> list[Path]:
    """Accuracy against the label distribution, one panel per capacity."""

    def dealt_as(case: Case) -> str:
        return f"{case['alpha']:g}" if case["split"] == "dirichlet" else str(case["split"])

    cases = results.where()
    full = [case for case in cases if case["algorithm"] == REFERENCE]
    kinds = [one for one in dict.fromkeys(map(share, cases)) if one != "full"]
    splits = sorted({dealt_as(case) for case in cases})  # Dirichlet parameters, then iid
    figure, axes = grid(len(kinds), height=2.7)
    for panel, kind in zip(axes, kinds, strict=True):
        panel_cases = [*full, *(case for case in cases if share(case) == kind)]
        planned = [case for case in results.study.cases if share(case) == kind]
        _against(panel, results, panel_cases, dealt_as, splits, planned=planned)
        panel.set_xlabel("Dirichlet parameter")
        panel.set_title("mixed widths" if kind == MIXED else f"width ratio {kind}")
    same_limits(axes)
    legend(figure, axes, data_name(cases), _seeds(results, cases))
    return save(figure, results, out / "heterogeneity")


def _seeds(results: Results, cases: Sequence[Case]) -> str:
    return seeds_text(results, cases, "mean ± standard deviation")


def _places(cases: Sequence[Case]) -> list[str]:
    """Capacities in axis order: widths in increasing order, mixed widths, then other budgets."""
    by_share = {share(case): case for case in cases if case["capacities"] is not None}
    return sorted(by_share, key=lambda one: case_order(by_share[one]))


def _unordered(shares: Sequence[str]) -> list[str]:
    return [one for one in shares if one == MIXED or "%" in one]


def _against(
    panel: Axes,
    results: Results,
    cases: Sequence[Case],
    of: Callable[[Case], str],
    places: Sequence[str],
    alone: Sequence[str] = (),
    planned: Sequence[Case] = (),
) -> None:
    """Draw accuracy by category, one line per method; FedAvg's full model is a dashed line.

    Args:
        panel: axes of the panel.
        results: results of the study.
        cases: cases of the panel.
        of: returns the category of a case; FedAvg's line spans all categories if it has none.
        places: all categories, in the order of the axis.
        alone: categories that are not connected by lines.
        planned: cases of the panel, of which those without runs are marked.
    """
    for case in (case for case in cases if case["algorithm"] == REFERENCE):
        mean = statistics.mean(results.finals(case))
        at = places.index(of(case)) if of(case) in places else None
        ends = (-0.4, len(places) - 0.6) if at is None else (at - 0.4, at + 0.4)
        label = f"{NAMES[REFERENCE]}, full model"
        panel.plot(ends, (mean, mean), "--", color="black", linewidth=1, label=label, zorder=1.9)
    for i, method in enumerate(METHODS):
        by_place = {of(case): case for case in cases if case["algorithm"] == method}
        shift = SHIFT * (i - (len(METHODS) - 1) / 2)
        for place in {of(case) for case in planned if case["algorithm"] == method}:
            if place in places and place not in by_place:
                mark(panel, places.index(place) + shift, NOT_RUN, LINES[method]["color"])
        known = [place for place in places if place in by_place]
        if not known:
            continue
        x = [places.index(place) + shift for place in known]
        values = [results.finals(by_place[place]) for place in known]
        means = [statistics.mean(one) for one in values]
        bars = [statistics.stdev(one) if len(one) > 1 else 0.0 for one in values]
        look: dict[str, Any] = LINES[method]
        lined = [j for j, place in enumerate(known) if place not in alone]
        panel.plot(
            [x[j] for j in lined],
            [means[j] for j in lined],
            color=look["color"],
            linestyle=look["linestyle"],
            linewidth=style().line,
        )
        panel.errorbar(
            x,
            means,
            yerr=bars if any(bars) else None,
            fmt=look["marker"],
            color=look["color"],
            markersize=style().small / 1.8,
            elinewidth=1,
            capsize=2,
            label=NAMES[method],
        )
    panel.set_xlim(-0.5, len(places) - 0.5)
    panel.set_xticks(range(len(places)), [one.replace(" of ", " of\n") for one in places])
    panel.set_ylabel(ACCURACY)


COVERED = {"covered": "-", "random": (0, (4, 2))}
"""Line style by kind of masks."""


def coverage(results: Results, out: Path) -> list[Path]:
    """Accuracy against S beta: one panel for fixed S, one for fixed beta."""
    cases = results.where()
    rounds = [case["clients_per_round"] for case in cases]
    common = max(dict.fromkeys(rounds), key=rounds.count)
    shared = [case["capacities"] for case in cases if case["clients_per_round"] != common]
    sides = [([case for case in cases if case["clients_per_round"] == common], f"S = {common}")]
    if shared:
        same = [case for case in cases if case["capacities"] == shared[0]]
        sides.append((same, f"β = {shared[0][0]:g}"))
    figure, axes = grid(len(sides), height=2.7)
    for panel, (panel_cases, title) in zip(axes, sides, strict=True):
        for method in OURS:
            for masks, dashes in COVERED.items():
                points = {
                    case["clients_per_round"] * case["capacities"][0]: results.finals(case)
                    for case in panel_cases
                    if (case["algorithm"], case["masks"]) == (method, masks)
                }
                x = sorted(points)
                means = [statistics.mean(points[one]) for one in x]
                bars = [statistics.stdev(v) if len(v := points[one]) > 1 else 0.0 for one in x]
                panel.errorbar(
                    x,
                    means,
                    yerr=bars if any(bars) else None,
                    color=LINES[method]["color"],
                    marker=LINES[method]["marker"] if masks == "covered" else "x",
                    linestyle=dashes,
                    linewidth=style().line,
                    markersize=style().small / 1.8,
                    capsize=2,
                    label=f"{NAMES[method]}, {masks}",
                )
        panel.set_xscale("log")
        ticks = sorted({c["clients_per_round"] * c["capacities"][0] for c in panel_cases})
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.set_xlabel("S β, mean coverage of a neuron (clients)")
        panel.set_ylabel(ACCURACY)
        panel.set_title(title)
    same_limits(axes)
    symbols = "S: clients per round; β: width"
    legend(figure, axes, setting_of(cases[0]), _seeds(results, cases), symbols)
    return save(figure, results, out / "coverage")


def radio(results: Results, out: Path) -> list[Path]:
    """Accuracy against simulated seconds, one curve per choice of widths and reference method.

    One panel for RA-Fed and one for RAM-Fed.
    """
    cases = in_order(results.where())
    styles = list(dict.fromkeys(map(_curve, cases)))
    figure, axes = new_figure(columns=2, height=3.0)
    for panel, method in zip(axes, OURS, strict=True):
        panel_cases = [case for case in cases if case["algorithm"] in (*REFERENCES, method)]
        runs = {_curve(case): results.rows(case) for case in panel_cases}
        draw_curves(panel, runs, "sim_seconds", legend=False, styles=styles, median=True)
        panel.set_title(f"{NAMES[method]} and other methods")
    same_limits(axes, x=True)
    every = [row for case in cases for rows in results.rows(case) for row in rows]
    end = max(row["sim_seconds"] for row in every)
    late = [100 * counted(row) for row in every if row["sim_seconds"] >= end / 5]
    for panel in axes:
        panel.set_ylim(bottom=min(late) - 2)  # without the first seconds
    seeds = seeds_text(results, cases, "median and range")
    legend(figure, axes, setting_of(cases[0]), seeds)
    return save(figure, results, out / "radio")


REFERENCES = (REFERENCE, *OTHERS)


def _curve(case: Case) -> str:
    """Label of a curve: the choice of widths, and the method if it is not the panel's."""
    name = name_of(case)
    if case["algorithm"] in OURS:
        return name.removeprefix(f"{NAMES[case['algorithm']]}, ")
    return f"{name}, {share(case)}" if case["budget"] is None else name
