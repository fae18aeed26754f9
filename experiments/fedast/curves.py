"""The FedAST paper's curves against simulated time, drawn from the rows of finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.fedast.measures import curves
from experiments.fedast.tasks import SHOWN, kind_of, kinds, label, names, target
from experiments.labels import seeds_text
from experiments.paper import Draw
from experiments.studies import Results
from wirelessfl.base.figures.curves import draw_curves, save_figure
from wirelessfl.results.panels import grid, legend, same_limits


def of_methods(name: str, without: Sequence[str] = ()) -> Draw:
    """Figures 2 and 4: mean accuracy over a data set's tasks against time, one panel per data set.

    Args:
        name: name of the file.
        without: data sets without a panel.
    """

    def draw(results: Results, out: Path) -> list[Path]:
        cases = results.where()
        shown = [kind for kind in kinds(cases[0]) if kind not in without]
        figure, axes = grid(len(shown))
        for panel, kind in zip(axes, shown, strict=True):
            tasks = [task for task in names(cases[0]) if kind_of(task) == kind]
            by_method = {label(case): curves(results, case, tasks) for case in cases}
            goal = target(cases[0], kind)
            draw_curves(panel, by_method, "sim_seconds", target=goal, legend=False)
            title = SHOWN[kind] if len(tasks) == 1 else f"mean of {len(tasks)} {SHOWN[kind]} tasks"
            panel.set_title(f"{title}, target {100 * goal:.0f} %")
        same_limits(axes)
        legend(figure, axes, seeds_text(results, cases))
        return save_figure(figure, out / name)

    return draw
