"""The FedAST figures against a setting: active clients, buffer size, awaited updates."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.fedast.drawing import Draw, Quantity, legend
from experiments.fedast.measures import final, to_target
from experiments.fedast.tables import ratio
from experiments.fedast.tasks import SHOWN, is_central, kind_of, kinds, label, names, target
from experiments.studies import Results
from wirelessfl.figures import COLOURS, DASHES, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHOSEN = 30
"""k in the paper's experiments."""


def active(name: str, quantity: Quantity = "accuracy") -> Draw:
    """Figures 3 and 13: a quantity against the ratio of active clients, by data set."""

    def draw(results: Results, out: Path) -> list[Path]:
        each = list(dict.fromkeys(kinds(case)[0] for case in results.where()))
        figure, axes = new_figure(columns=len(each), height=2.8)
        scale = 100 if quantity == "accuracy" else 1
        for panel, kind in zip(axes, each, strict=True):
            cases = [case for case in results.where() if kinds(case) == (kind,)]
            lines = list(dict.fromkeys(label(c) for c in cases if not is_central(c)))
            for line in lines:
                line_cases = sorted((c for c in cases if label(c) == line), key=ratio)
                ends = [[scale * v for v in final(results, case, quantity)] for case in line_cases]
                _line(panel, [ratio(case) for case in line_cases], ends, line, lines.index(line))
            for case in cases:
                if is_central(case):
                    height = scale * statistics.mean(final(results, case, quantity))
                    panel.axhline(height, color=COLOURS[3], linestyle="--", label="centralised")
            panel.set_title(SHOWN[kind], fontsize=9)
            panel.set_xlabel("active requests / clients", fontsize=9)
            axis_label = "final accuracy (%)" if quantity == "accuracy" else "final loss"
            panel.set_ylabel(axis_label, fontsize=9)
        legend(axes[0])
        return save_figure(figure, out / name)

    return draw


def buffers(name: str) -> Draw:
    """Figures 8 and 9: final accuracy and seconds to the target against b, one line per task."""

    def draw(results: Results, out: Path) -> list[Path]:
        figure, axes = new_figure(columns=2, height=2.8)
        cases = sorted(results.where(), key=lambda case: int(case["buffer"]))
        at = [float(case["buffer"]) for case in cases]
        for place, task in enumerate(names(cases[0])):
            ends = [[100 * v for v in final(results, case, of=[task])] for case in cases]
            _line(axes[0], at, ends, SHOWN[kind_of(task)], place)
            seconds = [to_target(results, case, task) for case in cases]
            goal = f"{SHOWN[kind_of(task)]}, {100 * target(cases[0], task):.0f} %"
            _line(axes[1], at, seconds, goal, place)
        for panel, text in zip(
            axes, ("final accuracy (%)", "simulated seconds to the target"), strict=True
        ):
            panel.set_xlabel("buffer size b", fontsize=9)
            panel.set_ylabel(text, fontsize=9)
            panel.legend(fontsize=8, frameon=False)
        axes[1].set_ylim(bottom=0)
        return save_figure(figure, out / name)

    return draw


def awaited(name: str) -> Draw:
    """Figures 10 to 12: seconds and rounds to the target, and final accuracy, against k."""

    def draw(results: Results, out: Path) -> list[Path]:
        figure, axes = new_figure(columns=3, height=2.6)
        cases = sorted(results.where(), key=lambda case: int(case["first"]))
        at = [float(case["first"]) for case in cases]
        (task,) = names(cases[0])
        goal = f"to {100 * target(cases[0], task):.0f} %"
        panels = {
            f"simulated seconds {goal}": [to_target(results, case, task) for case in cases],
            f"rounds {goal}": [to_target(results, case, task, "version") for case in cases],
            "final accuracy (%)": [[100 * v for v in final(results, c)] for c in cases],
        }
        for panel, (text, values) in zip(axes, panels.items(), strict=True):
            _line(panel, at, values, None, 0)
            for x, seeds in zip(at, values, strict=True):
                known = [v for v in seeds if v is not None]
                if x == CHOSEN and known:
                    height = statistics.mean(known)
                    panel.plot(x, height, "*", color=COLOURS[1], markersize=10, zorder=4)
            panel.set_xlabel(f"k, awaited updates ({SHOWN[kind_of(task)]})", fontsize=9)
            panel.set_ylabel(text, fontsize=9)
        return save_figure(figure, out / name)

    return draw


def _line(
    panel: Axes,
    at: Sequence[float],
    seeds: Sequence[Sequence[float | None]],
    name: str | None,
    place: int,
) -> None:
    """Plot mean and range of the known values; markers are hollow if some seeds have none."""
    known = [(x, [v for v in values if v is not None]) for x, values in zip(at, seeds, strict=True)]
    part = {x for x, values in zip(at, seeds, strict=True) if None in values}
    known = [(x, values) for x, values in known if values]
    colour = COLOURS[place % len(COLOURS)]
    panel.plot(
        [x for x, _ in known],
        [statistics.mean(values) for _, values in known],
        color=colour,
        linestyle=DASHES[place % len(DASHES)],
        marker="o",
        markersize=4,
        label=name,
    )
    for x, values in known:
        if len(values) > 1:
            panel.plot([x, x], [min(values), max(values)], color=colour, linewidth=1)
        if x in part:
            panel.plot(x, statistics.mean(values), "o", markersize=2, color="white", zorder=3)
