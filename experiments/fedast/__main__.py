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
from experiments.studies import Results
from wirelessfl.results.costs import LAST


def _different(study: str, number: int, against: str) -> dict[str, Experiment]:
    """Two figures of different tasks: FedAST (D)'s curves beside another method's, and times."""
    table = tables.times(tables.against_sync if against == "sync-st" else tables.against_static)
    first, second = f"fig{number}", f"fig{number + 1}"
    return {
        first: Experiment(study, table, curves.of_tasks(first, against)),
        second: Experiment(study, table, bars.of_tasks(second, against)),
    }


def _fig16(results: Results, out: Path) -> list[Path]:
    """Figure 16: curves (a) and bars (b)."""
    draws = curves.of_counts("fig16a"), bars.of_identical_tasks("fig16b")
    return [file for draw in draws for file in draw(results, out)]


MIXED = {"mnist": 0.93, "fashion-mnist": 0.72}
"""The main target of MNIST, whose lower one takes few rounds, and the lower one of Fashion-MNIST,
whose main one takes longer than the runs."""
REACHED = {"fashion-mnist": 0.8}
"""Below the main target, which not all runs hold over several tests."""

EXPERIMENTS = {
    "fig2": Experiment("fig2", tables.finals, curves.of_methods("fig2")),
    "fig3": Experiment("fig3", tables.active, sweeps.active("fig3")),
    "fig4": Experiment("fig4", tables.finals, curves.of_methods("fig4")),
    "fig5": Experiment("fig5", tables.identical, bars.of_identical_tasks("fig5")),
    **_different("heterogeneous", 6, "sync-st"),
    "fig8": Experiment("fig8", tables.buffers(MIXED), sweeps.buffers("fig8", MIXED)),
    "fig9": Experiment("fig9", tables.buffers(), sweeps.buffers("fig9")),
    **{
        name: Experiment(name, tables.awaited("lower", "main"), sweeps.awaited(name, MIXED))
        for name in ("fig10", "fig11", "fig12")
    },
    "fig13": Experiment("fig3", tables.active, sweeps.active("fig13", "loss")),
    "fig14": Experiment("fig4", tables.finals, curves.of_methods("fig14", "loss")),
    "fig15": Experiment("fig5", tables.identical, curves.of_counts("fig15")),
    "fig16": Experiment("fig16", tables.identical, _fig16),
    **_different("higher", 17, "sync-st"),
    **_different("lower", 19, "sync-st"),
    **_different("higher", 21, "static"),
    **_different("heterogeneous", 23, "static"),
    **_different("lower", 25, "static"),
    "comparison": Experiment("comparison", tables.times(), bars.of_methods("comparison")),
    "shakespeare": Experiment("shakespeare", tables.finals, curves.of_methods("shakespeare")),
    "concurrency": Experiment(
        "concurrency",
        tables.sustained(REACHED, LAST),
        bars.of_identical_tasks("concurrency", REACHED, LAST),
    ),
}
PAPER = Paper("fedast", Path(__file__).with_name("settings"), EXPERIMENTS, complete)


def timeline(arguments: argparse.Namespace) -> None:
    """Draw both timelines."""
    for file in timelines(arguments.out):
        print(f"drawn: {file}")


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"timeline": timeline}))
