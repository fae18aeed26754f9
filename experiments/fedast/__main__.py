"""``python -m experiments.fedast NAME --scale {smoke,small,paper}``: FedAST's figures and tables.

``timeline`` draws the clients' work under FedAST and Sync-ST.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.fedast import bars, curves, sweeps, tables
from experiments.fedast.tasks import complete
from experiments.fedast.timelines import timelines
from experiments.paper import Experiment, Paper
from wirelessfl.results.costs import LAST


def _four_tasks(study: str, against_sync: int, against_static: int) -> dict[str, Experiment]:
    """Times of FedAST (D) compared with Sync-ST, and with FedAST (S)."""
    return {
        f"fig{against_sync}": Experiment(study, tables.times(tables.against_sync)),
        f"fig{against_static}": Experiment(study, tables.times(tables.against_static)),
    }


MIXED = {"mnist": 0.93, "fashion-mnist": 0.72}
"""The main target of MNIST, whose lower one takes few rounds, and the lower one of Fashion-MNIST,
whose main one takes longer than the runs."""
REACHED = {"fashion-mnist": 0.8}
"""Below the main target, which not all runs hold over several tests."""

ENDED = ("mnist",)
"""At scale small, runs end at their targets, which FedAST-NoBuffer also reaches on this data."""

EXPERIMENTS = {
    "comparison": Experiment("comparison", tables.times(), bars.of_methods("comparison")),
    "shakespeare": Experiment("shakespeare", tables.finals, curves.of_methods("shakespeare")),
    **_four_tasks("heterogeneous", 7, 24),
    "fig5": Experiment("fig5", tables.identical, bars.of_identical_tasks("fig5")),
    "fig4": Experiment("fig4", tables.finals, curves.of_methods("fig4", ENDED)),
    "fig8": Experiment("fig8", tables.buffers(MIXED), sweeps.buffers("fig8", MIXED)),
    "fig9": Experiment("fig9", tables.buffers(), sweeps.buffers("fig9")),
    "fig3": Experiment("fig3", tables.active, sweeps.active("fig3")),
    "fig2": Experiment("fig2", tables.finals, curves.of_methods("fig2")),
    **{
        f"fig{n}": Experiment(f"fig{n}", tables.awaited("main"), sweeps.awaited(f"fig{n}"))
        for n in (10, 11, 12)
    },
    "fig16": Experiment("fig16", tables.identical, bars.of_identical_tasks("fig16")),
    "concurrency": Experiment(
        "concurrency",
        tables.sustained(REACHED, LAST),
        bars.of_identical_tasks("concurrency", REACHED, LAST),
    ),
    "awaited": Experiment(
        "awaited", tables.awaited("lower", "main"), sweeps.awaited("awaited", MIXED)
    ),
    **_four_tasks("higher", 18, 22),
    **_four_tasks("lower", 20, 26),
}
PAPER = Paper("fedast", Path(__file__).with_name("settings"), EXPERIMENTS, complete)


def timeline(arguments: argparse.Namespace) -> None:
    """Draw both timelines."""
    for file in timelines(arguments.out):
        print(f"drawn: {file}")


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"timeline": timeline}))
