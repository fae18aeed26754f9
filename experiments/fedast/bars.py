"""The FedAST paper's bar charts: seconds to the targets, with gains above the bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.fedast.drawing import Draw, compared
from experiments.fedast.measures import gain, to_end, to_mean, to_target
from experiments.fedast.tables import CaseFilter, pairs, percent
from experiments.fedast.tasks import SHOWN, kind_of, label, names, target
from experiments.studies import Case, Results
from wirelessfl.figures import draw_bars, new_figure, save_figure

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
    figure, (panel,) = new_figure(height=2.8)
    width = 4.2 if len(groups) < 4 and len(cases) < 4 else 6.5
    figure.set_size_inches(width, 2.8)
    _draw_bars(panel, seeds, "simulated seconds to the target")
    if gains and len(cases) == 2:
        fast, slow = seeds.values()
        _write_gains(panel, [(slow[group], fast[group]) for group in fast])
    return save_figure(figure, path)


def _draw_bars(panel: Axes, seeds: dict[str, dict[str, list[float | None]]], title: str) -> None:
    known = {
        series: {group: [v for v in values if v is not None] for group, values in by_group.items()}
        for series, by_group in seeds.items()
    }
    draw_bars(panel, known, title)
    panel.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _write_gains(
    panel: Axes, both: Sequence[tuple[Sequence[float | None], Sequence[float | None]]]
) -> None:
    """Write each group's gain above its bars."""
    for place, (slow, fast) in enumerate(both):
        value = gain(slow, fast)
        heights = [v for v in (*slow, *fast) if v is not None]
        if value is not None:
            panel.annotate(
                percent(value),
                (place, max(heights)),
                (0, 3),
                textcoords="offset points",
                fontsize=8,
                ha="center",
            )


def of_identical_tasks(name: str) -> Draw:
    """Figures 5 and 16b: mean seconds to the target with 2, 4, 6 identical tasks, and the gains."""

    def draw(results: Results, out: Path) -> list[Path]:
        found = pairs(results)
        each = list(dict.fromkeys(kind for kind, *_ in found))
        figure, axes = new_figure(columns=len(each), height=2.8)
        for panel, kind in zip(axes, each, strict=True):
            pairs_of_kind = [(n, fedast, sync) for k, n, fedast, sync in found if k == kind]
            seeds: dict[str, dict[str, list[float | None]]] = {
                series: {
                    f"{row[0]} tasks": to_mean(results, case)
                    for row in pairs_of_kind
                    if (case := row[place]) is not None
                }
                for place, series in ((1, "FedAST"), (2, "Sync-ST"))
            }
            _draw_bars(panel, {k: v for k, v in seeds.items() if v}, "mean seconds to the target")
            fast, slow = seeds.values()
            _write_gains(panel, [(slow.get(g, []), fast.get(g, [])) for g in fast or slow])
            case = pairs_of_kind[0][1] or pairs_of_kind[0][2]
            assert case is not None
            text = f"{SHOWN[kind]}, {100 * target(case, names(case)[0]):.0f} %"
            panel.set_xlabel(text, fontsize=9)
        return save_figure(figure, out / name)

    return draw
