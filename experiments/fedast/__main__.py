"""``python -m experiments.fedast NAME --scale {smoke,small,paper}``: FedAST's figures and tables.

``timeline`` draws the clients' work under FedAST and Sync-ST.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.fedast import bars, curves, sweeps, tables
from experiments.fedast.tasks import complete
from experiments.fedast.timelines import timelines
from experiments.paper import Experiment, Paper
from experiments.studies import Results
from wirelessfl.results.costs import LAST

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _different(study: str, number: int, against: str) -> dict[str, Experiment]:
    """Two figures of different tasks: FedAST (D)'s curves beside another method's, and times."""
    case_filter = tables.against_sync if against == "sync-st" else tables.against_static
    table = partial(tables.times, case_filter=case_filter)
    return {
        f"fig{number}": Experiment(study, table, partial(curves.of_tasks, against=against)),
        f"fig{number + 1}": Experiment(study, table, partial(bars.of_tasks, against=against)),
    }


def _fig16(results: Results) -> dict[str, Figure]:
    """Figure 16: curves (a) and bars (b)."""
    return {"a": curves.of_counts(results), "b": bars.of_identical_tasks(results)}


MIXED = {"mnist": 0.93, "fashion-mnist": 0.72}
"""The main target of MNIST, whose lower one takes few rounds, and the lower one of Fashion-MNIST,
whose main one takes longer than the runs."""
REACHED = {"fashion-mnist": 0.8}
"""Below the main target, which not all runs hold over several tests."""

EXPERIMENTS = {
    "fig2": Experiment("fig2", tables.finals, curves.of_methods),
    "fig3": Experiment("fig3", tables.active, sweeps.active),
    "fig4": Experiment("fig4", tables.finals, curves.of_methods),
    "fig5": Experiment("fig5", tables.identical, bars.of_identical_tasks),
    **_different("heterogeneous", 6, "sync-st"),
    "fig8": Experiment(
        "fig8", partial(tables.buffers, goal=MIXED), partial(sweeps.buffers, goal=MIXED)
    ),
    "fig9": Experiment("fig9", tables.buffers, sweeps.buffers),
    **{
        name: Experiment(name, tables.awaited, partial(sweeps.awaited, goal=MIXED))
        for name in ("fig10", "fig11", "fig12")
    },
    "fig13": Experiment("fig3", tables.active, partial(sweeps.active, what="loss")),
    "fig14": Experiment("fig4", tables.finals, partial(curves.of_methods, what="loss")),
    "fig15": Experiment("fig5", tables.identical, curves.of_counts),
    "fig16": Experiment("fig16", tables.identical, _fig16),
    **_different("higher", 17, "sync-st"),
    **_different("lower", 19, "sync-st"),
    **_different("higher", 21, "static"),
    **_different("heterogeneous", 23, "static"),
    **_different("lower", 25, "static"),
    "comparison": Experiment("comparison", tables.times, bars.of_methods),
    "shakespeare": Experiment("shakespeare", tables.finals, curves.of_methods),
    "concurrency": Experiment(
        "concurrency",
        partial(tables.sustained, goal=REACHED, tests=LAST),
        partial(bars.of_identical_tasks, goal=REACHED, tests=LAST),
    ),
}
PAPER = Paper("fedast", Path(__file__).with_name("settings"), EXPERIMENTS, complete)


def timeline(arguments: argparse.Namespace) -> None:
    """Draw both timelines."""
    for file in timelines(arguments.out):
        print(f"drawn: {file}")


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"timeline": timeline}))
