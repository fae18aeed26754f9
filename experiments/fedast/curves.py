"""The FedAST paper's curves against simulated time, drawn from the rows of finished runs."""

from __future__ import annotations

from pathlib import Path

from experiments.fedast.drawing import Draw, Quantity, compared, legend
from experiments.fedast.measures import curves, runs, to_target
from experiments.fedast.tables import CaseFilter
from experiments.fedast.tasks import SHOWN, kind_of, kinds, label, names, target
from experiments.studies import Results
from wirelessfl.figures import COLOURS, draw_curves, new_figure, save_figure

LOSS_TOP = 2.5
"""Upper end of the loss axis, slightly above the loss of a uniform guess among ten classes."""


def of_methods(name: str, quantity: Quantity = "accuracy") -> Draw:
    """Figures 2, 4 and 14: mean over a data set's tasks against time, one panel per data set."""

    def draw(results: Results, out: Path) -> list[Path]:
        cases = results.where()
        each = kinds(cases[0])
        figure, axes = new_figure(columns=len(each), height=3.0)
        for panel, kind in zip(axes, each, strict=True):
            by_method = {
                label(c): curves(results, c, [n for n in names(c) if kind_of(n) == kind])
                for c in cases
            }
            goal = target(cases[0], kind) if quantity == "accuracy" else None
            draw_curves(panel, by_method, "sim_seconds", what=quantity, target=goal, legend=False)
            count = sum(kind_of(n) == kind for n in names(cases[0]))
            title = SHOWN[kind] if count == 1 else f"mean of {count} {SHOWN[kind]} tasks"
            panel.set_title(title, fontsize=9)
            if quantity == "loss":
                panel.set_ylim(0, min(panel.get_ylim()[1], LOSS_TOP))
        legend(axes[0])
        return save_figure(figure, out / name)

    return draw


def of_one_run(name: str, case_filter: CaseFilter) -> Draw:
    """Figures 6, 17, 19 and, for D and S, 21, 23, 25: curves of one run, with times to targets."""

    def draw(results: Results, out: Path) -> list[Path]:
        cases = compared(results, case_filter)
        figure, axes = new_figure(columns=len(cases), height=3.2)
        for panel, case in zip(axes, cases, strict=True):
            run = runs(results, case)[0]
            for place, task in enumerate(names(case)):
                rows, colour = run.rows_of(task), COLOURS[place]
                goal = target(case, task)
                panel.plot(
                    [row["sim_seconds"] for row in rows],
                    [100 * row["accuracy"] for row in rows],
                    color=colour,
                    linewidth=1.4,
                    label=f"{SHOWN[kind_of(task)]}, {100 * goal:.0f} %",
                )
                at = to_target(results, case, task)[0]
                if at is not None:
                    panel.axvline(at, color=colour, linestyle="--", linewidth=1)
            panel.set_title(f"{label(case)}, seed {run.config.run.seed}", fontsize=9)
            panel.set_xlabel("simulated time (s)", fontsize=9)
        end = max(panel.get_xlim()[1] for panel in axes)
        top = max(panel.get_ylim()[1] for panel in axes)
        for panel in axes:
            panel.set_xlim(0, end)
            panel.set_ylim(0, top)
        axes[0].set_ylabel("test accuracy (%)", fontsize=9)
        legend(axes[0])
        return save_figure(figure, out / name)

    return draw


def of_identical_tasks(name: str) -> Draw:
    """Figures 15 and 16a: mean accuracy of identical tasks, one panel per data set."""

    def draw(results: Results, out: Path) -> list[Path]:
        each = list(dict.fromkeys(kinds(case)[0] for case in results.where()))
        figure, axes = new_figure(columns=len(each), height=3.2)
        for panel, kind in zip(axes, each, strict=True):
            cases = [case for case in results.where() if kinds(case) == (kind,)]
            counts = sorted({len(names(case)) for case in cases})
            for case in cases:
                seeds = curves(results, case)
                line = f"{label(case)}, {len(names(case))} tasks"
                draw_curves(panel, {line: seeds}, "sim_seconds", legend=False)
                drawn = panel.get_lines()[-1]
                drawn.set_color(COLOURS[counts.index(len(names(case)))])
                drawn.set_linestyle("-" if case["algorithm"] == "fedast" else "--")
                for shade in panel.collections[len(panel.collections) - (len(seeds) > 1) :]:
                    shade.set_color(COLOURS[counts.index(len(names(case)))])
            goal = 100 * target(cases[0], names(cases[0])[0])
            panel.axhline(goal, color="0.5", linewidth=0.8, linestyle=":")
            panel.set_title(SHOWN[kind], fontsize=9)
        legend(axes[0])
        return save_figure(figure, out / name)

    return draw
