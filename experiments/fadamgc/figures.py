"""The FAdamGC paper's figures, drawn from the rows of finished runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.fadamgc.tables import TARGETS, to_target
from experiments.studies import NAMES, Results
from wirelessfl.figures import COLOURS, DASHES, draw_curves, new_figure, save_figure

SHOWN = {"fashion-mnist": "Fashion-MNIST", "mnist": "MNIST", "digits": "digits"}
METHODS = ["fedavg-m", "scaffold-m", "fedadam", "fedams", "local-adam", "fa-nt", "fadamgc"]
STYLES = [NAMES[method] for method in METHODS]
WHATS = {"round": "rounds to the target", "sim_seconds": "simulated seconds to the target"}


def curves(results: Results, out: Path) -> list[Path]:
    """Figure 2: accuracy against rounds and simulated time, a pair of panels a data set."""
    sets = list(dict.fromkeys((c["dataset"], c["local_steps"]) for c in results.where()))[:2]
    figure, axes = new_figure(columns=2 * len(sets), height=3.0)
    for i, (dataset, steps) in enumerate(sets):
        cases = results.where(dataset=dataset, local_steps=steps)
        runs = {NAMES[case["algorithm"]]: results.rows(case) for case in cases}
        for panel, what in zip(axes[2 * i : 2 * i + 2], ("round", "sim_seconds"), strict=True):
            draw_curves(
                panel,
                runs,
                what,  # type: ignore[arg-type]
                target=TARGETS[dataset],
                legend=what == "round",
                styles=STYLES,
                common=what == "sim_seconds",
            )
            panel.set_title(f"{SHOWN.get(dataset, dataset)}, K = {steps}", fontsize=9)
    return save_figure(figure, out / "fig2")


def costs(name: str, setting: str, label: str) -> Callable[[Results, Path], list[Path]]:
    """A figure of rounds and seconds to the target against ``setting``, a line a method."""

    def draw(results: Results, out: Path) -> list[Path]:
        figure, axes = new_figure(columns=2, height=2.8)
        for panel, what in zip(axes, WHATS, strict=True):
            for method in METHODS:
                points: dict[Any, list[float]] = {
                    case[setting]: to_target(results, case, what)
                    for case in results.where(algorithm=method)
                }
                known = sorted(x for x, values in points.items() if values)
                if not known:
                    continue
                place = METHODS.index(method)
                style = {"color": COLOURS[place], "linestyle": DASHES[place % len(DASHES)]}
                means = [statistics.mean(points[x]) for x in known]
                panel.plot(known, means, label=NAMES[method], marker="o", markersize=3, **style)
            panel.set_xlabel(label, fontsize=9)
            panel.set_ylabel(WHATS[what], fontsize=9)
            panel.set_ylim(bottom=0)
            if panel.get_legend_handles_labels()[0]:
                panel.legend(fontsize=8, frameon=False)
            else:
                panel.text(0.5, 0.5, "no run reached it", transform=panel.transAxes, ha="center")
        return save_figure(figure, out / name)

    return draw
