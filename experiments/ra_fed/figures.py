"""Figures of RA-Fed's studies (the paper prints none): gains by width, masks, radio, scaling."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from experiments.axes import DOTS, difference_scale, difference_ticks
from experiments.comparison import most_finished
from experiments.evidence import differences, final_by_seed
from experiments.labels import costs_of, data_name, seeds_text
from experiments.ra_fed.measures import (
    DAGGER,
    DROP,
    coverage_of,
    diverged,
    gains_by_seed,
    in_order,
)
from experiments.ra_fed.methods import (
    METHODS,
    MIXED,
    OTHERS,
    OURS,
    REFERENCE,
    TARGETS,
    case_order,
    setting_of,
    share,
)
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import (
    colour_of,
    draw_bars,
    looks,
    new_figure,
    style,
)
from wirelessfl.base.figures.marks import DIVERGED, hits_of
from wirelessfl.results.costs import EDGE, at_edge, rank_of
from wirelessfl.results.panels import draw_points, legend, same_limits
from wirelessfl.results.selection import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TICKS = (-30, -10, -3, -1, 0, 1, 3, 10)


def widths(results: Results) -> Figure:
    """Accuracy minus that of the best other method, one line per setting, one panel per method."""
    both = {method: gains_by_seed(results, method) for method in OURS}
    every = {_line(case): case for pairs in both.values() for case, _ in pairs}
    lines = sorted(every, key=lambda one: (*case_order(every[one]), one))
    figure, axes = new_figure(len(OURS), height=0.8 + 0.15 * len(lines))
    shown_seeds = set()
    for panel, method in zip(axes, OURS, strict=True):
        look: dict[str, Any] = {"color": colour_of(method), "markersize": style().small / 2}
        for case, seeds in both[method]:
            y, seeds = lines.index(_line(case)), hits_of(seeds)
            if not seeds:
                at = panel.get_yaxis_transform()
                panel.plot(0.03, y, "x", transform=at, gid=DIVERGED, **look)
                continue
            shown_seeds.add(len(seeds))
            mean = statistics.mean(seeds)
            fill = colour_of(method) if len(seeds) > 1 else "white"
            panel.plot(mean, y, "o", markerfacecolor=fill, **look)
            if len(seeds) > 1:
                panel.plot(seeds, [y] * len(seeds), "o", **DOTS)
            if diverged(results, case):
                panel.annotate(DAGGER, (mean, y), (4, 0), textcoords="offset points", va="center")
        difference_scale(panel, "x")
        difference_ticks(panel, "x", TICKS)
        panel.set_yticks(range(len(lines)), lines if panel is axes[0] else [""] * len(lines))
        panel.tick_params(axis="y", labelsize=style().small)
        panel.set_ylim(len(lines) - 0.5, -0.5)
        panel.grid(visible=False, axis="y")
        for place in range(1, len(lines)):
            if share(every[lines[place]]) != share(every[lines[place - 1]]):
                panel.axhline(place - 0.5, color="0.7", linewidth=0.6)
        panel.set_xlabel("minus the best other method (pp)")
        panel.set_title(NAMES[method])
    same_limits(axes, x=True, y=False)
    names = ", ".join(NAMES[one] for one in OTHERS)
    mark = f"{DAGGER}: a seed diverged, or fell by {DROP:g} pp" if _any(axes) else ""
    single = "open: one seed" * (1 in shown_seeds)
    legend(figure, axes, f"others: {names}", "small dots: seeds", single, mark)
    return figure


def _line(case: Case) -> str:
    """A setting and its widths."""
    width = f"{MIXED} widths" if share(case) == MIXED else f"width {share(case)}"
    return f"{setting_of(case)}, {width}"


def _any(axes: Sequence[Axes]) -> bool:
    """Whether a run is marked as diverged."""
    return any(text.get_text() == DAGGER for panel in axes for text in panel.texts)


FORMS = {"crossed": "s", "random": "o"}
"""Markers by kind of masks."""


def coverage(results: Results) -> Figure:
    """Accuracy against the share of weights that no client trains, both relative to covered masks.

    A point is one kind of masks at one width and number of clients per round; one panel per method.
    """
    figure, axes = new_figure(len(OURS), height=2.5)
    for panel, method in zip(axes, OURS, strict=True):
        for masks, form in FORMS.items():
            look: dict[str, Any] = {"color": colour_of(method), "markersize": style().small / 1.8}
            look["markerfacecolor"] = colour_of(method) if masks == "random" else "white"
            for case, base in against_covered(results, method, masks):
                ends = (final_by_seed(results, one) for one in (case, base))
                gaps = [*differences(*ends).values()]
                reached, covered = coverage_of(results, case), coverage_of(results, base)
                if not gaps or reached is None or covered is None:
                    continue
                x = reached[1] - covered[1]
                panel.plot(x, statistics.mean(gaps), form, **look)
                panel.plot([x] * len(gaps), gaps, "o", **DOTS)
        panel.axhline(0, color="0.3", linewidth=0.8, zorder=1)
        panel.axvline(0, color="0.3", linewidth=0.8, zorder=1)
        panel.set_xlabel("untrained weights: minus covered masks (pp)")
        panel.set_ylabel("final accuracy:\nminus covered masks (pp)")
        panel.set_title(NAMES[method])
    for masks, form in FORMS.items():
        fill = "black" if masks == "random" else "white"
        look = {"color": "black", "markerfacecolor": fill, "linestyle": "none"}
        axes[0].plot([], [], form, label=f"{masks} masks", **look)
    same_limits(axes, x=True)
    cases = results.where()
    legend(figure, axes, setting_of(cases[0]), seeds_text(results, cases), "small dots: seeds")
    return figure


def against_covered(results: Results, method: str, masks: str) -> list[tuple[Case, Case]]:
    """Cases of a kind of masks with those of covered masks at equal widths and clients per round.

    Full models, for which masks mean nothing, are left out.
    """
    keys = ("capacities", "clients_per_round")
    pairs = []
    for case in results.where(algorithm=method, masks=masks):
        same = {key: case[key] for key in keys}
        bases = results.where(algorithm=method, masks="covered", **same)
        if bases and max(case["capacities"]) < 1:
            pairs.append((case, bases[0]))
    return pairs


PLACES = ("static", "covered", "random", "ordered")
"""Kinds of masks on the axis; HeteroFL and FedAvg-small have ordered ones."""


def full(results: Results) -> Figure:
    """Accuracy by kind of masks if all clients train in every round, one panel per alpha.

    Methods that mix widths and runs with fewer clients per round are in the table only.
    """
    everyone = max(results.values("clients_per_round"))
    figure, axes = new_figure(len(results.values("alpha")), height=2.5)
    for panel, alpha in zip(axes, sorted(results.values("alpha")), strict=True):
        every = results.where(alpha=alpha, clients_per_round=everyone)
        widths = sorted({c["capacities"] for c in every if c["capacities"]}, reverse=True)
        lines = [(m, w) for m in (*OURS, "heterofl", "fedavg-small") for w in widths if len(w) == 1]
        names = {one: f"{NAMES[one[0]]}, width {_width(one[1])}" for one in lines}
        by_name = looks(list(names.values()))
        for place, (method, width) in enumerate(lines):
            cases = [c for c in every if (c["algorithm"], c["capacities"]) == (method, width)]
            beside = [one for one in lines if (one[0] in OURS) == (method in OURS)]
            shift = 0.13 * (beside.index((method, width)) - (len(beside) - 1) / 2)
            points = {
                float(PLACES.index(c["masks"] or PLACES[-1])): [*results.finals(c)] for c in cases
            }
            if points:
                name = names[method, width]
                look = by_name[name]
                draw_points(panel, points, name, place, line=False, shift=shift, look=look)
        for case in (case for case in every if case["algorithm"] == REFERENCE):
            mean = statistics.mean(results.finals(case))
            label = f"{NAMES[REFERENCE]}, full model"
            panel.axhline(mean, linestyle="--", color="black", linewidth=1, label=label)
        panel.set_xticks(range(len(PLACES)), PLACES)
        panel.set_xlim(-0.5, len(PLACES) - 0.5)
        panel.set_xlabel("masks")
        panel.set_ylabel("final accuracy (%)")
        panel.set_title(f"Dirichlet parameter {alpha:g}")
    same_limits(axes)
    cases = results.where()
    legend(figure, axes, data_name(cases), f"{everyone} of {everyone} clients per round",
           seeds_text(results, cases))  # fmt: skip
    return figure


def _width(capacities: tuple[float, ...]) -> str:
    return str(Fraction(capacities[0]).limit_denominator(16))


def radio(results: Results) -> Figure:
    """Simulated seconds to the target, one bar per method and choice of widths."""
    cases = in_order(results.where())
    target = TARGETS[cases[0]["dataset"]]
    figure, (panel,) = new_figure(height=2.5)
    figure.set_figwidth(style().wide)
    bars = {_bar(case): costs_of(results, case, "sim_seconds", target) for case in cases}
    draw_bars(panel, {"": bars}, f"time to {100 * target:g} % (s)")
    box = panel.get_legend()
    if box is not None:
        box.remove()
    for place, (bar, case) in enumerate(zip(panel.patches, cases, strict=True)):
        bar.set_facecolor(colour_of(case["algorithm"]))
        if diverged(results, case):
            at = place, panel.dataLim.y1 / 20
            panel.annotate(DAGGER, at, color="white", ha="center")
    panel.margins(y=0.12)
    mark = f"{DAGGER}: a seed diverged later" if _any([panel]) else ""
    legend(figure, [panel], setting_of(cases[0]), seeds_text(results, cases), mark)
    return figure


def _bar(case: Case) -> str:
    """A method and its choice of widths, on several lines."""
    name = NAMES[case["algorithm"]]
    if case["budget"] == "deadline":
        return f"{name}\ndeadline\n{case['deadline']:g} s"
    if case["budget"] == "fastest":
        return f"{name}\nfastest,\nΓ* = {case['min_coverage']}"
    return f"{name}\n" + ("full\nmodel" if case["capacities"] is None else "mixed\nwidths")


FACTORS = ("width", "none")
"""With and without scaled activations."""


def scale(results: Results) -> Figure:
    """Accuracy with scaled activations minus that without, each at its best step size."""
    figure, (panel,) = new_figure(height=2.6)
    sizes = sorted(results.values("capacities"))
    for place, method in enumerate(METHODS):
        points: dict[float, Sequence[float | None] | None] = {}
        for at, capacities in enumerate(sizes):
            gaps = scaled_gain(results, method, capacities)
            if gaps:
                points[float(at)] = gaps
        if points:
            draw_points(panel, points, NAMES[method], place, shift=0.17 * (place - 2.5), line=False)
    difference_scale(panel, "y")
    low, high = panel.get_ylim()
    difference_ticks(panel, "y", TICKS)
    panel.set_ylim(1.5 * low, high)
    edges = [one for one in sizes if _at_edge(results, one)]
    labels = [share(results.where(capacities=one)[0]) + "*" * (one in edges) for one in sizes]
    panel.set_xticks(range(len(sizes)), labels)
    panel.set_xlim(-0.5, len(sizes) - 0.5)
    panel.set_xlabel("width of the submodels")
    panel.set_ylabel("final accuracy:\nscaled minus unscaled (pp)")
    cases = results.where()
    mark = f"*: some best step sizes are at the {EDGE}" if edges else ""
    legend(figure, [panel], setting_of(cases[0]), seeds_text(results, cases), mark)
    return figure


def scaled_gain(results: Results, method: str, capacities: tuple[float, ...]) -> list[float]:
    """The difference for each seed, at the best step sizes."""
    pair = [_best_step(results, method, capacities, factor) for factor in FACTORS]
    accuracies = [final_by_seed(results, case) for case in pair if case is not None]
    if len(accuracies) < len(FACTORS):
        return []
    return [*differences(*accuracies).values()]


def _best_step(
    results: Results, method: str, capacities: tuple[float, ...], factor: str
) -> Case | None:
    """The case whose step size has the highest mean final accuracy; None without runs."""
    cases = results.where(algorithm=method, capacities=capacities, submodel_scale=factor)
    tried = most_finished(results, cases)
    return max(tried, key=lambda case: rank_of(results.finals(case)), default=None)


def _at_edge(results: Results, capacities: tuple[float, ...]) -> bool:
    """Whether a best step size at this width is the smallest or largest one with runs."""
    for method, factor in itertools.product(METHODS, FACTORS):
        best = _best_step(results, method, capacities, factor)
        tried = results.where(algorithm=method, capacities=capacities, submodel_scale=factor)
        if best is not None and at_edge(best["lr"], [case["lr"] for case in tried]):
            return True
    return False
