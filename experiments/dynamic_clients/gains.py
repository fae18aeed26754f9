"""Gains of Proposed over other warm starts, by model, algorithm and data set."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.axes import DOTS, difference_scale, difference_ticks
from experiments.dynamic_clients.measures import gain, pairs, session_of
from experiments.dynamic_clients.methods import ALGORITHMS, SHOWN
from experiments.dynamic_clients.tables import paper_of
from experiments.evidence import mean_by_seed
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import colour_of, new_figure, style
from wirelessfl.base.figures.marks import hits_of
from wirelessfl.base.rows import has_diverged
from wirelessfl.results.costs import markdown, spread
from wirelessfl.results.panels import legend, same_limits
from wirelessfl.results.selection import DATA, MODELS, NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASELINES = ("previous", "average", "continuous")
NUMBERS = (1, 2)
"""Transitions of the paper's Table 3."""
TABLE = 3
GAIN = (
    "Gain of Proposed in percentage points, ± the sample standard deviation over the seeds; in "
    f"parentheses, the values of the paper's Table {TABLE}. †: runs with the other warm start "
    "diverged.\n\n"
)
TICKS = (-3, -1, 0, 1, 3, 10, 30, 100)
APART = 0.36
"""Distance of two data sets, of 1 between algorithms."""
FORMS = ("o", "s", "^")
"""Markers by data set; the first is filled, the others are open."""
LOST = "x"
"""Marker of gains over runs that diverged."""


class Gain(NamedTuple):
    """The gain of Proposed over a warm start, in points: mean over settings and transitions.

    Args:
        seeds: one value per seed that all these settings have.
        paper: the paper's value for the same settings; None if it has none.
        diverged: whether a run with the other warm start diverged.
    """

    seeds: list[float]
    paper: float | None
    diverged: bool


def gain_of(results: Results, over: str, **settings: str) -> Gain | None:
    """The gain over a warm start in all cases with these settings; None without runs."""
    both = pairs(results, over, **settings)
    gains = [gain(results, one, number) for one in both for number in NUMBERS]
    seeds = [*mean_by_seed(gains).values()]
    if not seeds:
        return None
    printed = [_printed(one, number) for one in both for number in NUMBERS]
    numbers = [value for value in printed if value is not None]
    return Gain(
        seeds,
        statistics.mean(numbers) if numbers and len(numbers) == len(printed) else None,
        any(_lost(results, case) for _, case in both),
    )


def _printed(both: tuple[Case, Case], number: int) -> float | None:
    mine, theirs = (paper_of(TABLE, case, number) for case in both)
    return mine.mean - theirs.mean if mine and theirs else None


def _lost(results: Results, case: Case) -> bool:
    """Whether a run diverged in a session after one of the transitions."""
    sessions = {session_of(number) for number in NUMBERS}
    return any(
        has_diverged(row)
        for rows in results.rows(case)
        for row in rows
        if row["session"] in sessions
    )


def groups(results: Results) -> list[tuple[str, str]]:
    """Models with their algorithms, in order."""
    combinations = {(case["model"], case["algorithm"]) for case in results.where()}
    models = results.values("model")
    return sorted(combinations, key=lambda one: (models.index(one[0]), ALGORITHMS.index(one[1])))


def table(results: Results) -> str:
    """One row per model and algorithm: the gains over all data sets, with the paper's."""
    rows = []
    for model, algorithm in groups(results):
        cells = []
        for over in BASELINES:
            gain = gain_of(results, over, model=model, algorithm=algorithm)
            if gain is None:
                cells.append("-")
                continue
            paper = "" if gain.paper is None else f" ({gain.paper:.1f})"
            cells.append(spread(gain.seeds) + paper + " †" * gain.diverged)
        rows.append([MODELS.get(model, model), NAMES[algorithm], *cells])
    head = ["model", "algorithm", *(f"over {SHOWN[over]}" for over in BASELINES)]
    return GAIN + markdown(head, rows)


def points(results: Results) -> Figure:
    """One panel per warm start, one line per model and algorithm, one marker per data set."""
    lines, sets = groups(results), results.values("dataset")
    figure, axes = new_figure(len(BASELINES), height=0.75 + 0.24 * len(lines))
    for panel, over in zip(axes, BASELINES, strict=True):
        for place, (model, algorithm) in enumerate(lines):
            for rank, data in enumerate(sets):
                gain = gain_of(results, over, model=model, algorithm=algorithm, dataset=data)
                if gain is not None:
                    y = place + APART * (rank - (len(sets) - 1) / 2)
                    _draw(panel, y, gain, colour_of(algorithm), rank)
        _arrange(panel, [f"{NAMES[one]}" for _, one in lines], panel is axes[0])
        starts = [p for p, (m, _) in enumerate(lines) if p and m != lines[p - 1][0]]
        for start in starts:
            panel.axhline(start - 0.5, color="0.5", linewidth=0.6)
        panel.set_title(f"over {SHOWN[over]}")
        panel.set_xlabel("gain of Proposed (pp)")
    same_limits(axes, x=True, y=False)
    for model in dict.fromkeys(model for model, _ in lines):
        first = next(place for place, (one, _) in enumerate(lines) if one == model)
        axes[0].annotate(
            MODELS.get(model, model),
            (0.02, first - 0.35),
            xycoords=("axes fraction", "data"),
            fontsize=style().small,
            fontstyle="italic",
            va="top",
        )
    for rank, data in enumerate(sets):
        look: dict[str, Any] = {
            "color": "black",
            "markerfacecolor": "black" if rank == 0 else "white",
        }
        axes[0].plot([], [], FORMS[rank], label=DATA[data], markersize=style().small / 1.8, **look)
    axes[0].plot([], [], "|", color="0.45", markersize=9, label="the paper's value")
    if any(line.get_marker() == LOST for panel in axes for line in panel.get_lines()):
        axes[0].plot([], [], LOST, color="black", label="the other warm start diverged")
    legend(figure, axes, "mean over settings, transitions and seeds")
    return figure


def _draw(panel: Axes, y: float, gain: Gain, colour: str, rank: int) -> None:
    """Draw a gain: its mean, its seeds and the paper's value."""
    if gain.paper is not None:
        panel.plot(gain.paper, y, "|", color="0.45", markersize=6, zorder=1.8)
    seeds, size = hits_of(gain.seeds), style().small / 1.8
    if not seeds:
        at = panel.get_yaxis_transform()
        panel.plot(0.97, y, LOST, color=colour, markersize=size, zorder=2.5, transform=at)
        return
    mean, fill = statistics.mean(seeds), colour if rank == 0 else "white"
    form = LOST if gain.diverged else FORMS[rank]
    panel.plot(mean, y, form, color=colour, markerfacecolor=fill, markersize=size, zorder=2.5)
    panel.plot(seeds, [y] * len(seeds), "o", gid="seed", **DOTS)


def _arrange(panel: Axes, names: Sequence[str], named: bool) -> None:
    """The axes of a panel: a line at zero, algorithms from the top."""
    difference_scale(panel, "x")
    difference_ticks(panel, "x", TICKS)
    panel.set_yticks(range(len(names)), names if named else [""] * len(names))
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")
