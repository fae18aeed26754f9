"""The FAdamGC paper's figures, drawn from the rows of finished runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from experiments.fadamgc.methods import METHODS
from experiments.fadamgc.tables import TARGETS, to_target
from experiments.look import data_name, save, seeds_text
from experiments.studies import Case, Results
from wirelessfl.figures import draw_curves, new_figure, whole_ticks
from wirelessfl.results.names import DATA, NAMES
from wirelessfl.results.panels import draw_points, legend, same_limits

PANELS = ("fashion-mnist", "mnist", "digits", "cifar100", "20newsgroups")
"""Data sets of Figure 2: those of scales smoke and small, and the two in the paper."""
STYLES = [NAMES[method] for method in METHODS]
AXIS_LABELS = {"round": "rounds to the target", "sim_seconds": "simulated time to target (s)"}
SMOOTH, MANY = 7, 30
"""Tests averaged for each point of a curve, if a run has many tests."""


def curves(results: Results, out: Path) -> list[Path]:
    """Figure 2: median accuracy over seeds against rounds and time, one file per data set."""
    pairs = dict.fromkeys((c["dataset"], c["local_steps"]) for c in results.where())
    sets = [pair for pair in pairs if pair[0] in PANELS][:2]
    files = []
    for place, (dataset, steps) in enumerate(sets):
        figure, axes = new_figure(columns=2, height=3.0)
        cases = results.where(dataset=dataset, local_steps=steps)
        runs = {NAMES[case["algorithm"]]: results.rows(case) for case in cases}
        smooth = SMOOTH if min(len(r) for seeds in runs.values() for r in seeds) >= MANY else 1
        for panel, quantity in zip(axes, ("round", "sim_seconds"), strict=True):
            draw_curves(
                panel,
                runs,
                quantity,  # type: ignore[arg-type]
                target=TARGETS[dataset],
                legend=False,
                styles=STYLES,
                median=True,
                smooth=smooth,
            )
        same_limits(axes)
        smoothed = f"moving averages of {smooth} tests" if smooth > 1 else ""
        seeds = seeds_text(results, cases, "median and range")
        legend(figure, axes, *_facts(cases), f"K = {steps} local steps", seeds, smoothed)
        files += save(figure, results, out / (f"fig2-{dataset}" if place else "fig2"))
    return files


def _facts(cases: list[Case]) -> list[str]:
    sets = dict.fromkeys(case["dataset"] for case in cases)
    targets = [
        f"target {100 * TARGETS[one]:g} %" + (f" ({DATA[one]})" if len(sets) > 1 else "")
        for one in sets
    ]
    return [data_name(cases), ", ".join(targets)]


def costs(
    name: str, setting: str, label: str, tests: int = 1
) -> Callable[[Results, Path], list[Path]]:
    """A figure of rounds and seconds to the target against ``setting``, one line per method.

    ``tests`` is the number of tests that are averaged, see ``place_reaching``.
    """

    def draw(results: Results, out: Path) -> list[Path]:
        figure, axes = new_figure(columns=2, height=2.6)
        cases = results.where()
        known = {case["algorithm"] for case in results.study.cases}
        methods = [method for method in METHODS if method in known]
        for panel, quantity in zip(axes, AXIS_LABELS, strict=True):
            for method in methods:
                points = {
                    float(case[setting]): to_target(results, case, quantity, tests) or None
                    for case in results.study.cases
                    if case["algorithm"] == method and case[setting] is not None
                }
                draw_points(panel, points, NAMES[method], METHODS.index(method))
            if setting != "alpha":
                whole_ticks(panel)
            panel.set_xlabel(label)
            panel.set_ylabel(AXIS_LABELS[quantity])
            panel.set_ylim(0, 1.06 * panel.get_ylim()[1])
        facts = [
            *_facts(cases),
            f"mean of {tests} tests" * (tests > 1),
            f"K = {_steps(cases)} local steps",
        ]
        legend(figure, axes, *facts, seeds_text(results, cases))
        return save(figure, results, out / name)

    return draw


def _steps(cases: list[Case]) -> str:
    return " and ".join(map(str, sorted({case["local_steps"] for case in cases})))
