"""``make demo``: HFedAvg and HIST with four cells, over TDMA or the air, on scikit-learn digits."""

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
from wirelessfl.cli.show import closing_table
from wirelessfl.figures import draw_curves, new_figure, save_figure
from wirelessfl.results.panels import legend

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


def main(words: Sequence[str] | None = None) -> None:
    """Parse the command line and run the demo."""
    parser = Parser(prog="python -m experiments.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/demo"), metavar="DIR")
    parser.add_argument("--rounds", type=int, default=60, metavar="T", help="global rounds (60)")
    arguments = parser.parse_args(words)
    demo(arguments.out, arguments.rounds)
    print(f"\nNext, a run with settings of your choice (--help lists them):\n{next_command()}")


if __name__ == "__main__":
    main()
