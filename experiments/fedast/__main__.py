"""``python -m experiments.fedast NAME --scale {smoke,small,paper}``: FedAST's figures and tables.

``timeline`` draws the clients' work under FedAST and Sync-ST.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.fedast import bars, curves, sweeps, tables
from experiments.fedast.measures import LAST
from experiments.fedast.tables import against_static, against_sync
from experiments.fedast.tasks import complete
from experiments.fedast.timelines import timelines
from experiments.paper import Experiment, Paper, both


def _four_tasks(study: str, *numbers: int) -> dict[str, Experiment]:
    """Curves and times of FedAST (D) compared with Sync-ST, then with FedAST (S)."""
    made = {}
    for case_filter, figures in zip(
        (against_sync, against_static), (numbers[:2], numbers[2:]), strict=True
    ):
        table = tables.times(case_filter)
        for number, draw in zip(figures, (curves.of_one_run, bars.of_compared), strict=True):
            name = f"fig{number}"
            made[name] = Experiment(study, table, draw(name, case_filter))
    return made


MIXED = {"mnist": 0.93, "fashion-mnist": 0.72}
"""The main target of MNIST, whose lower one takes few rounds, and the lower one of Fashion-MNIST,
whose main one takes longer than the runs."""
REACHED = {"fashion-mnist": 0.8}
"""Below the main target, which not all runs hold over several tests."""

EXPERIMENTS = {
    "comparison": Experiment(
        "comparison",
        tables.times(),
        both(
            curves.of_methods("comparison"),
            bars.of_methods("comparison-times"),
        ),
    ),
    "shakespeare": Experiment("shakespeare", tables.finals, curves.of_methods("shakespeare")),
    **_four_tasks("heterogeneous", 6, 7, 23, 24),
    "fig5": Experiment("fig5", tables.identical, bars.of_identical_tasks("fig5")),
    "fig15": Experiment("fig5", tables.identical, curves.of_identical_tasks("fig15")),
    "fig4": Experiment("fig4", tables.finals, curves.of_methods("fig4")),
    "fig14": Experiment("fig4", tables.finals, curves.of_methods("fig14", "loss")),
    "fig8": Experiment("fig8", tables.buffers(MIXED), sweeps.buffers("fig8", MIXED)),
    "fig9": Experiment("fig9", tables.buffers(), sweeps.buffers("fig9")),
    "fig3": Experiment("fig3", tables.active, sweeps.active("fig3")),
    "fig13": Experiment("fig3", tables.active, sweeps.active("fig13", "loss")),
    "fig2": Experiment("fig2", tables.finals, curves.of_methods("fig2")),
    **{
        f"fig{n}": Experiment(f"fig{n}", tables.awaited("main"), sweeps.awaited(f"fig{n}"))
        for n in (10, 11, 12)
    },
    "fig16": Experiment(
        "fig16",
        tables.identical,
        both(curves.of_identical_tasks("fig16"), bars.of_identical_tasks("fig16-times")),
    ),
    "concurrency": Experiment(
        "concurrency",
        tables.sustained(REACHED, LAST),
        bars.of_identical_tasks("concurrency", REACHED, LAST),
    ),
    "awaited": Experiment(
        "awaited", tables.awaited("lower", "main"), sweeps.awaited("awaited", MIXED)
    ),
    **_four_tasks("higher", 17, 18, 21, 22),
    **_four_tasks("lower", 19, 20, 25, 26),
}
PAPER = Paper("fedast", Path(__file__).with_name("settings"), EXPERIMENTS, complete)


def timeline(arguments: argparse.Namespace) -> None:
    """Draw both timelines."""
    for file in timelines(arguments.out):
        print(f"drawn: {file}")


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"timeline": timeline}))
