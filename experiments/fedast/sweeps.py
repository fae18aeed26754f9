"""The FedAST figures against a setting: active clients, buffer size, awaited updates."""

from __future__ import annotations

import statistics
from pathlib import Path

from experiments.fedast.drawing import Draw, Quantity, targets
from experiments.fedast.measures import final, to_target
from experiments.fedast.tables import ratio
from experiments.fedast.tasks import SHOWN, is_central, kind_of, kinds, label, names, target
from experiments.look import draw_points, grid, legend, same_limits, save, seeds_text
from experiments.studies import Results
from wirelessfl.figures import COLOURS, new_figure, style, whole_ticks

CHOSEN = 30
"""k in the paper's experiments."""


def active(name: str, quantity: Quantity = "accuracy") -> Draw:
    """Figures 3 and 13: a quantity against the ratio of active clients, by data set."""

    def draw(results: Results, out: Path) -> list[Path]:
        each = list(dict.fromkeys(kinds(case)[0] for case in results.where()))
        figure, axes = grid(len(each))
        scale = 100 if quantity == "accuracy" else 1
        for panel, kind in zip(axes, each, strict=True):
            cases = [case for case in results.where() if kinds(case) == (kind,)]
            lines = list(dict.fromkeys(label(c) for c in cases if not is_central(c)))
            for place, line in enumerate(lines):
                points = {
                    ratio(c): [scale * v for v in final(results, c, quantity)]
                    for c in cases
                    if label(c) == line
                }
                draw_points(panel, points, line, place, order=(place, len(lines)))
            for case in cases:
                if is_central(case):
                    height = scale * statistics.mean(final(results, case, quantity))
                    panel.axhline(height, color=COLOURS[3], linestyle="--", label="centralised")
            panel.set_title(_tasks_title(kind, max(len(names(case)) for case in cases)))
            panel.set_xlabel("active requests / clients")
            axis_label = "final accuracy (%)" if quantity == "accuracy" else "final loss"
            panel.set_ylabel(axis_label)
        same_limits(axes)
        legend(figure, axes, _seeds(results))
        return save(figure, results, out / name)

    return draw


def _tasks_title(kind: str, count: int) -> str:
    return f"{SHOWN[kind]}, one task" if count == 1 else f"mean of {count} {SHOWN[kind]} tasks"


def buffers(name: str) -> Draw:
    """Figures 8 and 9: final accuracy and seconds to the target against b, one line per task."""

    def draw(results: Results, out: Path) -> list[Path]:
        figure, axes = new_figure(columns=2)
        cases = results.study.cases
        tasks = names(cases[0])
        for place, task in enumerate(tasks):
            ends, seconds = {}, {}
            for case in cases:
                at, finished = float(case["buffer"]), bool(results.of(case))
                accuracies = [100 * v for v in final(results, case, of=[task])]
                ends[at] = accuracies if finished else None
                seconds[at] = to_target(results, case, task) if finished else None
            for panel, points in zip(axes, (ends, seconds), strict=True):
                order = place, len(tasks)
                draw_points(panel, points, SHOWN[kind_of(task)], place, order=order)
        for panel, text in zip(
            axes, ("final accuracy (%)", "simulated time to target (s)"), strict=True
        ):
            panel.set_xlabel("buffer size b")
            panel.set_ylabel(text)
            whole_ticks(panel)
        axes[1].set_ylim(bottom=0)
        legend(figure, axes, targets(cases[0]), _seeds(results))
        return save(figure, results, out / name)

    return draw


def awaited(name: str) -> Draw:
    """Figures 10 to 12: seconds and rounds to the target, and final accuracy, against k."""

    def draw(results: Results, out: Path) -> list[Path]:
        figure, axes = new_figure(columns=3, height=2.3)
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
            draw_points(panel, dict(zip(at, values, strict=True)), None, 0)
            for x, seeds in zip(at, values, strict=True):
                known = [v for v in seeds if v is not None]
                if x == CHOSEN and known:
                    height = statistics.mean(known)
                    star = {"color": COLOURS[1], "markersize": 1.3 * style().small, "zorder": 4}
                    panel.plot(x, height, "*", **star)
            panel.set_xlabel("k, awaited updates")
            panel.set_ylabel(text)
            whole_ticks(panel)
        chosen = f"star: k = {CHOSEN} of the paper" if CHOSEN in at else ""
        legend(figure, axes, SHOWN[kind_of(task)], _seeds(results), chosen)
        return save(figure, results, out / name)

    return draw


def _seeds(results: Results) -> str:
    return seeds_text(results, results.where())
