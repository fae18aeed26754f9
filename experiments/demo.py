"""``make demo``: HFedAvg and HIST with four cells, over TDMA or the air, on scikit-learn digits.

Then it designs the network and the training together, and trains the design.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.runs import kept_run
from wirelessfl.cli.parser import Parser
from wirelessfl.cli.show import closing_table, predictions_table
from wirelessfl.codesign.design import design
from wirelessfl.codesign.designs import Design
from wirelessfl.codesign.tables import bought_table, chosen_table
from wirelessfl.config import Config
from wirelessfl.figures import draw_curves, new_figure, save_figure
from wirelessfl.observers import Console as Progress
from wirelessfl.results.panels import legend
from wirelessfl.runs.predictions import predictions
from wirelessfl.runs.run import run

TARGET = 0.9
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
    "HIST, uniform masks": ("hist", {"mask_sizes": "uniform"}),
    "HIST, optimized masks": ("hist", {"mask_sizes": "optimized"}),
    "HIST over the air": ("hist", {"mask_sizes": "optimized", "uplink": "aircomp"}),
}


def next_command() -> str:
    """The suggested next command, with a relative path if possible."""
    script = Path(sys.executable).with_name("wirelessfl")
    here = Path.cwd()
    if not script.exists():
        words = [sys.executable, "-m", "wirelessfl"]
    else:
        words = [str(script.relative_to(here) if script.is_relative_to(here) else script)]
    return shlex.join([*words, "run", "hist", "--dataset", "digits"])


def demo(out: Path, rounds: int = 60) -> list[dict[str, Any]]:
    """Train, print the summary table and draw two figures into ``out``; return the table."""
    console = Console()
    rows, summaries = {}, []
    with tempfile.TemporaryDirectory() as scratch:
        for label, (algorithm, settings) in RUNS.items():
            result = kept_run(label, Path(scratch), algorithm, **COMMON, **settings, rounds=rounds)
            rows[label] = [result.rows]
            summaries.append({"label": label, **result.summary()})
    console.print(closing_table(summaries))
    for against, name in (("uplink_mib", "accuracy-mib"), ("sim_seconds", "accuracy-seconds")):
        figure, (axes,) = new_figure()
        traffic = against == "uplink_mib"
        draw_curves(axes, rows, against, target=TARGET, floor=0.5, common=traffic, legend=False)
        if not traffic:  # over the air is ten times as fast
            axes.set_xscale("log")
        legend(figure, [axes], f"digits, FCNN; target {100 * TARGET:g} %; 1 seed")
        for file in save_figure(figure, out / f"demo-{name}"):
            console.print(f"drawn: {file}", markup=False, soft_wrap=True)
    return summaries


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
    found = design(
        config,
        local_steps=[2, 5, 10, 20],
        edge_rounds=[1, 2, 5],
        pilots=pilots,
        pilot_steps=steps,
        root=scratch / "pilots",
        on_note=lambda note: console.print(note, markup=False, highlight=False, soft_wrap=True),
    )
    assert found.value is not None, "errors are raised"
    for table in (chosen_table, bought_table):
        console.print(table(found.value), markup=False, highlight=False, soft_wrap=True)
    console.print(str(found), markup=False, highlight=False, soft_wrap=True)
    bars = Progress(Console(stderr=True), "the design", lines=False)
    result = run(found.value.config.with_run({"out": scratch / "design"}), observers=[bars])
    realised = predictions(result)
    assert realised is not None, "designs have predictions"
    console.print(predictions_table(realised))
    return found.value, realised


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
