"""The FedAST paper's figures, drawn from the rows of finished runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from experiments.fedast.measures import curves, final, gain, runs, to_end, to_mean, to_target
from experiments.fedast.tables import (
    Pick,
    against_static,
    fastest,
    pairs,
    percent,
    ratio,
)
from experiments.fedast.tasks import SHOWN, is_central, kind_of, kinds, label, names, target
from experiments.studies import Case, Results
from wirelessfl.figures import (
    COLOURS,
    DASHES,
    draw_bars,
    draw_curves,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[[Results, Path], list[Path]]
What = Literal["accuracy", "loss"]
LOSS_TOP = 2.5
"""What is drawn of losses, a little more than that of ten equal guesses."""


def methods(name: str, what: What = "accuracy") -> Draw:
    """Figures 2, 4 and 14: the mean over the tasks against time, or a panel a task."""

    def draw(results: Results, out: Path) -> list[Path]:
        cases = results.where()
        each = kinds(cases[0])
        figure, axes = new_figure(columns=len(each), height=3.0)
        for panel, kind in zip(axes, each, strict=True):
            by_method = {
                label(c): curves(results, c, [n for n in names(c) if kind_of(n) == kind])
                for c in cases
            }
            goal = target(cases[0], kind) if what == "accuracy" else None
            draw_curves(panel, by_method, "sim_seconds", what=what, target=goal, legend=False)
            count = sum(kind_of(n) == kind for n in names(cases[0]))
            title = SHOWN[kind] if count == 1 else f"mean of {count} {SHOWN[kind]} tasks"
            panel.set_title(title, fontsize=9)
            if what == "loss":
                panel.set_ylim(0, min(panel.get_ylim()[1], LOSS_TOP))
        _legend(axes[0])
        return save_figure(figure, out / name)

    return draw


def _legend(panel: Axes) -> None:
    """Names of what is drawn in a panel and those beside it, above them all."""
    figure, (handles, texts) = panel.figure, panel.get_legend_handles_labels()
    columns = round(figure.get_figwidth() / 2.3)
    figure.legend(
        handles, texts, fontsize=8, frameon=False, loc="outside upper center", ncols=columns
    )


def active(name: str, what: What = "accuracy") -> Draw:
    """Figures 3 and 13: what is reached against the ratio of active clients, a panel a data set."""

    def draw(results: Results, out: Path) -> list[Path]:
        each = list(dict.fromkeys(kinds(case)[0] for case in results.where()))
        figure, axes = new_figure(columns=len(each), height=2.8)
        scale = 100 if what == "accuracy" else 1
        for panel, kind in zip(axes, each, strict=True):
            cases = [case for case in results.where() if kinds(case) == (kind,)]
            lines = list(dict.fromkeys(label(c) for c in cases if not is_central(c)))
            for line in lines:
                line_cases = sorted((c for c in cases if label(c) == line), key=ratio)
                ends = [[scale * v for v in final(results, case, what)] for case in line_cases]
                _line(panel, [ratio(case) for case in line_cases], ends, line, lines.index(line))
            for case in cases:
                if is_central(case):
                    height = scale * statistics.mean(final(results, case, what))
                    panel.axhline(height, color=COLOURS[3], linestyle="--", label="centralised")
            panel.set_title(SHOWN[kind], fontsize=9)
            panel.set_xlabel("requests of all tasks over clients", fontsize=9)
            final_ = "final accuracy (%)" if what == "accuracy" else "final loss"
            panel.set_ylabel(final_, fontsize=9)
        _legend(axes[0])
        return save_figure(figure, out / name)

    return draw


def _line(
    panel: Axes,
    at: Sequence[float],
    seeds: Sequence[Sequence[float | None]],
    name: str | None,
    place: int,
) -> None:
    """A line through means over the seeds that have a value, ranges as bars; hollow: not all do."""
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


def one_run(name: str, pick: Pick) -> Draw:
    """Figures 6, 17, 19 and, of D and S, 21, 23, 25: a run's curves and when it reaches what."""

    def draw(results: Results, out: Path) -> list[Path]:
        cases = _two(results, pick)
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
        _legend(axes[0])
        return save_figure(figure, out / name)

    return draw


def _two(results: Results, pick: Pick) -> list[Case]:
    """FedAST (D), and what it is compared with: the fastest Sync-ST, or FedAST (S)."""
    cases = [case for case in results.where() if pick(case)]
    dynamic = [case for case in cases if case["option"] == "D"]
    others = [case for case in cases if case["option"] != "D"]
    if pick is not against_static:
        others = [case for case in others if case["first"] != 0]
    return dynamic[:1] + ([fastest(results, others)] if others else [])


def bars(name: str, pick: Pick) -> Draw:
    """Figures 7, 18, 20, 22, 24, 26: mean seconds to the targets, and FedAST (D)'s gains."""

    def draw(results: Results, out: Path) -> list[Path]:
        return _bars(results, _two(results, pick), out / name)

    return draw


def all_bars(name: str) -> Draw:
    """Likewise of every method, with the gains of the first over the second."""
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
    """Each group's gain over its bars."""
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


def identical_bars(name: str) -> Draw:
    """Figures 5 and 16b: mean seconds to the target of 2, 4, 6 identical tasks, with the gains."""

    def draw(results: Results, out: Path) -> list[Path]:
        found = pairs(results)
        each = list(dict.fromkeys(kind for kind, *_ in found))
        figure, axes = new_figure(columns=len(each), height=2.8)
        for panel, kind in zip(axes, each, strict=True):
            of_kind = [(n, fedast, sync) for k, n, fedast, sync in found if k == kind]
            seeds: dict[str, dict[str, list[float | None]]] = {
                series: {
                    f"{row[0]} tasks": to_mean(results, case)
                    for row in of_kind
                    if (case := row[place]) is not None
                }
                for place, series in ((1, "FedAST"), (2, "Sync-ST"))
            }
            _draw_bars(panel, {k: v for k, v in seeds.items() if v}, "mean seconds to the target")
            fast, slow = seeds.values()
            _write_gains(panel, [(slow.get(g, []), fast.get(g, [])) for g in fast or slow])
            case = of_kind[0][1] or of_kind[0][2]
            assert case is not None
            text = f"{SHOWN[kind]}, {100 * target(case, names(case)[0]):.0f} %"
            panel.set_xlabel(text, fontsize=9)
        return save_figure(figure, out / name)

    return draw


def identical_curves(name: str) -> Draw:
    """Figures 15 and 16a: mean accuracy of identical tasks, a panel a data set."""

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
        _legend(axes[0])
        return save_figure(figure, out / name)

    return draw


def both(*draws: Draw) -> Draw:
    """Several files."""
    return lambda results, out: [file for draw in draws for file in draw(results, out)]


def buffers(name: str) -> Draw:
    """Figures 8 and 9: final accuracy and seconds to the target against b, a line a task."""

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
            panel.set_xlabel(f"k, updates awaited ({SHOWN[kind_of(task)]})", fontsize=9)
            panel.set_ylabel(text, fontsize=9)
        return save_figure(figure, out / name)

    return draw


CHOSEN = 30
"""k of the paper's experiments."""
