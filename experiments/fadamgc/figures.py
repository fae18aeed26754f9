"""The FAdamGC paper's figures, drawn from the rows of finished runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.fadamgc.methods import METHODS
from experiments.fadamgc.tables import TARGETS, mean_to_target, to_target
from experiments.studies import NAMES, Results
from wirelessfl.figures import COLOURS, DASHES, draw_curves, new_figure, save_figure

SHOWN = {"fashion-mnist": "Fashion-MNIST", "mnist": "MNIST", "digits": "digits"}
PANELS = ("fashion-mnist", "mnist", "digits", "cifar100", "20newsgroups")
"""Data sets of Figure 2: those of scales smoke and small, and the two in the paper."""
STYLES = [NAMES[method] for method in METHODS]
AXIS_LABELS = {"round": "rounds to the target", "sim_seconds": "simulated seconds to the target"}


def curves(results: Results, out: Path) -> list[Path]:
    """Figure 2: median accuracy over seeds against rounds and time, one file per data set."""
    pairs = dict.fromkeys((c["dataset"], c["local_steps"]) for c in results.where())
    sets = [pair for pair in pairs if pair[0] in PANELS][:2]
    files = []
    for place, (dataset, steps) in enumerate(sets):
        figure, axes = new_figure(columns=2, height=3.2)
        cases = results.where(dataset=dataset, local_steps=steps)
        runs = {NAMES[case["algorithm"]]: results.rows(case) for case in cases}
        for panel, quantity in zip(axes, ("round", "sim_seconds"), strict=True):
            draw_curves(
                panel,
                runs,
                quantity,  # type: ignore[arg-type]
                target=TARGETS[dataset],
                legend=quantity == "round",
                styles=STYLES,
                common=quantity == "sim_seconds",
                median=True,
            )
            panel.set_title(f"{SHOWN.get(dataset, dataset)}, K = {steps}", fontsize=9)
        files += save_figure(figure, out / (f"fig2-{dataset}" if place else "fig2"))
    return files


def costs(name: str, setting: str, label: str) -> Callable[[Results, Path], list[Path]]:
    """A figure of rounds and seconds to the target against ``setting``, one line per method.

    A hollow marker means that some seeds did not reach the target; the mean is over those that did.
    """

    def draw(results: Results, out: Path) -> list[Path]:
        figure, axes = new_figure(columns=2, height=2.8)
        for panel, quantity in zip(axes, AXIS_LABELS, strict=True):
            for method in METHODS:
                cases = results.where(algorithm=method)
                points: dict[Any, list[float]] = {
                    case[setting]: to_target(results, case, quantity) for case in cases
                }
                part = {c[setting] for c in cases if mean_to_target(results, c) is None}
                known = sorted(x for x, values in points.items() if values)
                if not known:
                    continue
                place = METHODS.index(method)
                style = {"color": COLOURS[place], "linestyle": DASHES[place % len(DASHES)]}
                means = [statistics.mean(points[x]) for x in known]
                panel.plot(known, means, label=NAMES[method], marker="o", markersize=4, **style)
                for x, mean in zip(known, means, strict=True):
                    if x in part:
                        panel.plot(x, mean, "o", markersize=2, color="white", zorder=3)
            panel.set_xlabel(label, fontsize=9)
            panel.set_ylabel(AXIS_LABELS[quantity], fontsize=9)
            panel.set_ylim(bottom=0)
            if panel.get_legend_handles_labels()[0]:
                panel.legend(fontsize=8, frameon=False)
            else:
                panel.text(0.5, 0.5, "target not reached", transform=panel.transAxes, ha="center")
        return save_figure(figure, out / name)

    return draw
