"""The FedAST paper's bar charts: seconds to the targets, with gains above the bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.fedast.drawing import compared, targets
from experiments.fedast.measures import gain, to_end, to_mean, to_target
from experiments.fedast.tables import CaseFilter, pairs, percent
from experiments.fedast.tasks import SHOWN, Goal, kind_of, label, names, target
from experiments.look import save, seeds_text
from experiments.paper import Draw
from experiments.studies import Case, Results
from wirelessfl.figures import draw_bars, new_figure, style
from wirelessfl.results.panels import grid, legend, same_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def of_compared(name: str, case_filter: CaseFilter) -> Draw:
    """Figures 7, 18, 20, 22, 24, 26: mean seconds to the targets, and the gains of FedAST (D)."""

    def draw(results: Results, out: Path) -> list[Path]:
        return _bars(results, compared(results, case_filter), out / name)

    return draw


def of_methods(name: str) -> Draw:
    """Mean seconds to the targets for every method, without gains."""
    return lambda results, out: _bars(results, results.where(), out / name, gains=False)


def _bars(results: Results, cases: Sequence[Case], path: Path, gains: bool = True) -> list[Path]:
    groups = {SHOWN[kind_of(task)]: task for task in names(cases[0])}
    seeds = {
        label(case): {
            **{shown: to_target(results, case, task) for shown, task in groups.items()},
            "all": to_end(results, case),
        }
        for case in cases
    }
    figure, (panel,) = new_figure(height=2.6)
    if len(cases) > 3 or len(groups) > 3:
        figure.set_figwidth(style().wide)
    draw_bars(panel, seeds, "simulated time to target (s)")
    panel.margins(y=0.12)
    saved = ""
    if gains and len(cases) == 2:
        fast, slow = seeds.values()
        saved = _write_gains(panel, label(cases[0]), [(slow[g], fast[g]) for g in fast])
    legend(figure, [panel], targets(cases[0]), seeds_text(results, cases), saved)
    return save(figure, results, path)


def _write_gains(
    panel: Axes, name: str, both: Sequence[tuple[Sequence[float | None], Sequence[float | None]]]
) -> str:
    """Write the gain of the method ``name`` above the bars of each group; say what it is."""
    for place, (slow, fast) in enumerate(both):
        value = gain(slow, fast)
        heights = [v for v in (*slow, *fast) if v is not None]
        if value is not None:
            panel.annotate(
                percent(value),
                (place, max(heights)),
                (0, 3),
                textcoords="offset points",
                fontsize=style().small,
                ha="center",
            )
    return f"percentages: time that {name} saves"


def of_identical_tasks(name: str, goal: Goal = None, tests: int = 1) -> Draw:
    """Figures 5 and 16b: mean seconds to the target with 2, 4, 6 identical tasks, and the gains.

    Args:
        name: name of the file.
        goal: the targets.
        tests: number of tests that are averaged, see ``place_reaching``.
    """

    def draw(results: Results, out: Path) -> list[Path]:
        found = pairs(results)
        each = list(dict.fromkeys(kind for kind, *_ in found))
        figure, axes = grid(len(each))
        for panel, kind in zip(axes, each, strict=True):
            pairs_of_kind = sorted(
                ((n, fedast, sync) for k, n, fedast, sync in found if k == kind),
                key=lambda pair: pair[0],
            )
            groups = [str(count) for count, *_ in pairs_of_kind]
            seeds: dict[str, dict[str, list[float | None]]] = {
                series: {
                    str(row[0]): to_mean(results, case, goal, tests)
                    for row in pairs_of_kind
                    if (case := row[place]) is not None
                }
                for place, series in ((1, "FedAST"), (2, "Sync-ST"))
            }
            several = f"time until the mean of {tests} tests\nreaches the target (s)"
            draw_bars(panel, seeds, several if tests > 1 else "time to target (s)", groups)
            panel.margins(y=0.12)
            fast, slow = seeds.values()
            both = [(slow.get(g, []), fast.get(g, [])) for g in groups]
            saved = _write_gains(panel, next(iter(seeds)), both)
            case = pairs_of_kind[0][1] or pairs_of_kind[0][2]
            assert case is not None
            text = f"{SHOWN[kind]}, target {100 * target(case, names(case)[0], goal):.0f} %"
            panel.set_title(text)
            panel.set_xlabel("number of identical tasks")
        same_limits(axes)
        seeds_shown = seeds_text(results, results.where())
        legend(figure, axes, "mean over the tasks", seeds_shown, saved)
        return save(figure, results, out / name)

    return draw
