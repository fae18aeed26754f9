"""``make demo``: HFedAvg and HIST with four cells, over TDMA or the air, on scikit-learn digits.

All are trained to a target with five seeds. Then the demo designs the network and the training
together, and trains the design.
"""

from __future__ import annotations

import re
import shlex
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.runs import kept_run
from wirelessfl.base.figures.curves import draw_bars, new_figure, save_figure, style
from wirelessfl.cli.output import predictions_table
from wirelessfl.cli.parser import Parser
from wirelessfl.config import Config
from wirelessfl.designs.design import design
from wirelessfl.designs.solution import Design
from wirelessfl.observers import Console as Progress
from wirelessfl.runs.run import run
from wirelessfl.runs.summaries import predictions

TARGET = 0.9
SEEDS = (1, 2, 3, 4, 5)
COMMON: dict[str, Any] = {
    "dataset": "digits",
    "model": "fcnn",
    "cells": 4,
    "clients": 20,
    "split": "noniid",
    "lr": 0.05,
    "batch_size": 20,
    "local_steps": 5,
    "edge_rounds": 2,
    "target": TARGET,
}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "HFedAvg": ("hfedavg", {}),
    "HIST, equal submodels": ("hist", {"mask_sizes": "uniform"}),
    "HIST, optimized submodels": ("hist", {"mask_sizes": "optimized"}),
    "HIST over the air": ("hist", {"mask_sizes": "optimized", "uplink": "aircomp"}),
}
COSTS = {
    "round": "rounds",
    "uplink_mib": "MiB/client",
    "sim_seconds": "seconds",
    "joules": "joules",
}
"""Columns of the table."""
FIGURES = {"uplink_mib": ("mib", "MiB per client"), "sim_seconds": ("seconds", "simulated seconds")}
"""Names and axes of the figures."""


def next_command() -> str:
    """The suggested next command, with a relative path if possible."""
    script = Path(sys.executable).with_name("wirelessfl")
    here = Path.cwd()
    if not script.exists():
        words = [sys.executable, "-m", "wirelessfl"]
    else:
        words = [str(script.relative_to(here) if script.is_relative_to(here) else script)]
    return shlex.join([*words, "run", "hist", "--dataset", "digits"])


def demo(
    out: Path, rounds: int = 60, seeds: Sequence[int] = SEEDS
) -> dict[str, list[dict[str, Any]]]:
    """Train to the target, print the table and draw two figures into ``out``.

    Args:
        out: folder of the figures.
        rounds: most global rounds of a run.
        seeds: seeds of each method.

    Returns:
        The summaries of each method's runs, by seed.
    """
    from matplotlib.patches import Rectangle

    console = Console()
    by_label: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for label, (algorithm, settings) in RUNS.items():
            flags = COMMON | settings | {"rounds": rounds, "stop_at_target": True}
            by_label[label] = [
                kept_run(
                    f"{label}, seed {seed}", Path(scratch), algorithm, **flags, seed=seed
                ).summary()
                for seed in seeds
            ]
    console.print(costs_table(by_label))
    for quantity, (name, axis) in FIGURES.items():
        figure, (axes,) = new_figure(height=2.3)
        bars = {
            label: {"": [cost_of(summary, quantity) for summary in summaries]}
            for label, summaries in by_label.items()
            if quantity != "uplink_mib" or sends_bits(label)
        }
        draw_bars(axes, bars, f"{axis} to {100 * TARGET:g} %")
        axes.margins(y=0.05)
        if (names := axes.get_legend()) is not None:
            names.remove()  # they stand below the bars
        drawn = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
        centres = [bar.get_x() + bar.get_width() / 2 for bar in drawn]
        axes.set_xticks(centres, [re.sub(r",? ", r"\n", label, count=2) for label in bars])
        text = f"digits, FCNN; mean and single values of {len(seeds)} seeds"
        figure.suptitle(text, fontsize=style().small)
        for file in save_figure(figure, out / f"demo-{name}"):
            console.print(f"drawn: {file}", markup=False, soft_wrap=True)
    return by_label


def sends_bits(label: str) -> bool:
    """Whether a method's clients send bits: sums over the air have symbols instead."""
    return "uplink" not in RUNS[label][1]


def cost_of(summary: dict[str, Any], quantity: str) -> float | None:
    """The cost of a run until the target; None if it does not reach the target."""
    return float(summary[quantity]) if summary["accuracy"] >= TARGET else None


def costs_table(by_label: dict[str, list[dict[str, Any]]]) -> Table:
    """Each method's mean costs until the target, over the seeds that reach it."""
    table = Table(title=f"mean cost until accuracy {TARGET:g}")
    table.add_column("run")
    for heading in ("seeds", *COSTS.values()):
        table.add_column(heading, justify="right", no_wrap=True)
    for label, summaries in by_label.items():
        reached = [one for one in summaries if cost_of(one, "round") is not None]
        cells = [f"{len(reached)} of {len(summaries)}"]
        for quantity in COSTS:
            comparable = reached and (quantity != "uplink_mib" or sends_bits(label))
            mean = statistics.mean(float(one[quantity]) for one in reached) if comparable else None
            cells.append("-" if mean is None else f"{mean:.2g}")
        table.add_row(label, *cells)
    return table


def designed(
    scratch: Path, *, pilots: int = 6, steps: int = 1000
) -> tuple[Design, dict[str, dict[str, float | None]]]:
    """Design HIST over the demo's network, train the design, print both; return its predictions.

    Args:
        scratch: folder of the pilots and of the run.
        pilots: number of pilots that differ in local steps and edge rounds.
        steps: most local steps of a client in a pilot.
    """
    console = Console()
    console.print("\nHIST with network and training designed together, from short runs (pilots):")
    config = Config.from_flags("hist", **COMMON)
    solution = design(
        config,
        local_steps=[2, 5, 10, 20],
        edge_rounds=[1, 2, 5],
        pilots=pilots,
        pilot_steps=steps,
        root=scratch / "pilots",
        on_note=lambda note: console.print(note, markup=False, highlight=False, soft_wrap=True),
    )
    assert solution.value is not None, "errors are raised"
    for table in (solution.value.choice_table(), solution.value.reports.bought_table()):
        console.print(table, markup=False, highlight=False, soft_wrap=True)
    console.print(str(solution), markup=False, highlight=False, soft_wrap=True)
    bars = Progress(Console(stderr=True), "the design", lines=False)
    result = run(solution.value.config.with_run({"out": scratch / "design"}), observers=[bars])
    realised = predictions(result.settings, result.rows)
    assert realised is not None, "designs have predictions"
    console.print(predictions_table(realised))
    return solution.value, realised


def main(words: Sequence[str] | None = None) -> None:
    """Parse the command line and run the demo."""
    parser = Parser(prog="python -m experiments.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/demo"), metavar="DIR")
    parser.add_argument("--rounds", type=int, default=60, metavar="T", help="global rounds (60)")
    arguments = parser.parse_args(words)
    demo(arguments.out, arguments.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        designed(Path(scratch))
    print(f"\nNext, a run with settings of your choice (--help lists them):\n{next_command()}")


if __name__ == "__main__":
    main()
