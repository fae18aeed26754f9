"""Figures of submodel training, drawn from the rows of finished runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.ra_fed.measures import finals, in_order, panels
from experiments.ra_fed.methods import (
    METHODS,
    MIXED,
    OTHERS,
    OURS,
    REFERENCE,
    name_of,
    setting_of,
    share,
)
from experiments.studies import NAMES, Case, Results
from wirelessfl.figures import COLOURS, DASHES, draw_curves, new_figure, save_figure

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
        figure, axes = new_figure(columns=len(group), height=3.1)
        for panel, cases in zip(axes, group, strict=True):
            shares = _places(cases)
            _against(panel, results, cases, share, shares, alone=_unordered(shares))
            panel.set_xlabel("client width ratio", fontsize=9)
            panel.set_title(setting_of(cases[0]), fontsize=9)
        _legend(figure, axes)
        files += save_figure(figure, out / (f"widths-{name}" if place else "widths"))
    return files


def heterogeneity(results: Results, out: Path) -> list[Path]:
    """Accuracy against the label distribution, one panel per capacity."""

    def dealt_as(case: Case) -> str:
        return f"{case['alpha']:g}" if case["split"] == "dirichlet" else str(case["split"])

    cases = results.where()
    full = [case for case in cases if case["algorithm"] == REFERENCE]
    kinds = [one for one in dict.fromkeys(map(share, cases)) if one != "full"]
    splits = sorted({dealt_as(case) for case in cases})  # Dirichlet parameters, then iid
    figure, axes = new_figure(columns=len(kinds), height=3.1)
    for panel, kind in zip(axes, kinds, strict=True):
        panel_cases = [*full, *(case for case in cases if share(case) == kind)]
        _against(panel, results, panel_cases, dealt_as, splits)
        panel.set_xlabel("Dirichlet parameter", fontsize=9)
        title = "mixed widths" if kind == MIXED else f"width ratio {kind}"
        panel.set_title(title, fontsize=9)
    for panel in axes[1:]:
        panel.sharey(axes[0])
    axes[0].autoscale()
    _legend(figure, axes)
    return save_figure(figure, out / "heterogeneity")


def _places(cases: Sequence[Case]) -> list[str]:
    """Capacities in axis order: widths in increasing order, mixed widths, then other budgets."""
    by_share = {share(case): case for case in cases if case["capacities"] is not None}
    return sorted(
        by_share, key=lambda one: (case_order(by_share[one]), max(by_share[one]["capacities"]))
    )


def case_order(case: Case) -> int:
    """Sort key: 0 for one width, 1 for mixed widths, 2 for other budgets."""
    return 2 if case["budget"] is not None else int(len(case["capacities"]) > 1)


def _unordered(shares: Sequence[str]) -> list[str]:
    return [one for one in shares if one == MIXED or "%" in one]


def _against(
    panel: Axes,
    results: Results,
    cases: Sequence[Case],
    of: Callable[[Case], str],
    places: Sequence[str],
    alone: Sequence[str] = (),
) -> None:
    """Draw accuracy by category, one line per method; FedAvg's full model is a dashed line.

    Args:
        panel: axes of the panel.
        results: results of the study.
        cases: cases of the panel.
        of: returns the category of a case; FedAvg's line spans all categories if it has none.
        places: all categories, in the order of the axis.
        alone: categories that are not connected by lines.
    """
    for case in (case for case in cases if case["algorithm"] == REFERENCE):
        mean = statistics.mean(finals(results, case))
        at = places.index(of(case)) if of(case) in places else None
        ends = (-0.4, len(places) - 0.6) if at is None else (at - 0.4, at + 0.4)
        label = f"{NAMES[REFERENCE]}, full model"
        panel.plot(ends, (mean, mean), "--", color="black", linewidth=1, label=label, zorder=1.9)
    for i, method in enumerate(METHODS):
        by_place = {of(case): case for case in cases if case["algorithm"] == method}
        known = [place for place in places if place in by_place]
        if not known:
            continue
        shift = SHIFT * (i - (len(METHODS) - 1) / 2)
        x = [places.index(place) + shift for place in known]
        values = [finals(results, by_place[place]) for place in known]
        means = [statistics.mean(one) for one in values]
        bars = [statistics.stdev(one) if len(one) > 1 else 0.0 for one in values]
        style: dict[str, Any] = LINES[method]
        lined = [j for j, place in enumerate(known) if place not in alone]
        panel.plot(
            [x[j] for j in lined],
            [means[j] for j in lined],
            color=style["color"],
            linestyle=style["linestyle"],
            linewidth=1.2,
        )
        panel.errorbar(
            x,
            means,
            yerr=bars if any(bars) else None,
            fmt=style["marker"],
            color=style["color"],
            markersize=4,
            elinewidth=1,
            label=NAMES[method],
        )
    panel.set_xticks(range(len(places)), [one.replace(" of ", " of\n") for one in places])
    panel.set_ylabel(ACCURACY, fontsize=9)


def _legend(figure: Any, axes: Sequence[Axes], columns: int = 6) -> None:
    """One legend for all panels, above them."""
    by_text = {
        t: h for panel in axes for h, t in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    if len(axes) == 1:
        columns = 3
    figure.legend(
        by_text.values(),
        by_text.keys(),
        fontsize=8,
        frameon=False,
        loc="outside upper center",
        ncols=min(columns, len(by_text)),
    )


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
    figure, axes = new_figure(columns=len(sides), height=3.1)
    for panel, (panel_cases, title) in zip(axes, sides, strict=True):
        for method in OURS:
            for masks, dashes in COVERED.items():
                points = {
                    case["clients_per_round"] * case["capacities"][0]: finals(results, case)
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
                    linewidth=1.2,
                    markersize=4,
                    label=f"{NAMES[method]}, {masks}",
                )
        panel.set_xscale("log")
        ticks = sorted({c["clients_per_round"] * c["capacities"][0] for c in panel_cases})
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.set_xlabel("S β, mean coverage of a neuron", fontsize=9)
        panel.set_ylabel(ACCURACY, fontsize=9)
        panel.set_title(f"{setting_of(panel_cases[0])}, {title}", fontsize=9)
    _legend(figure, axes)
    return save_figure(figure, out / "coverage")


def radio(results: Results, out: Path) -> list[Path]:
    """Accuracy against simulated seconds, one curve per choice of widths and reference method.

    One panel for RA-Fed and one for RAM-Fed.
    """
    cases = in_order(results.where())
    styles = list(dict.fromkeys(map(_curve, cases)))
    figure, axes = new_figure(columns=2, height=3.4)
    for panel, method in zip(axes, OURS, strict=True):
        panel_cases = [case for case in cases if case["algorithm"] in (*REFERENCES, method)]
        runs = {_curve(case): results.rows(case) for case in panel_cases}
        draw_curves(panel, runs, "sim_seconds", legend=False, styles=styles, median=True)
        panel.set_title(f"{NAMES[method]} and others ({setting_of(cases[0])})", fontsize=8)
        panel.sharey(axes[0])
    axes[0].autoscale()
    known = [row["accuracy"] for case in cases for rows in results.rows(case) for row in rows]
    axes[0].set_ylim(bottom=max(100 * max(known) - 35, 0))  # omit the first seconds
    _legend(figure, axes, columns=4)
    return save_figure(figure, out / "radio")


REFERENCES = (REFERENCE, *OTHERS)


def _curve(case: Case) -> str:
    """Label of a curve: the choice of widths, and the method if it is not the panel's."""
    name = name_of(case)
    if case["algorithm"] in OURS:
        return name.removeprefix(f"{NAMES[case['algorithm']]}, ")
    return f"{name}, {share(case)}" if case["budget"] is None else name
