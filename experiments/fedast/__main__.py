"""``python -m experiments.fedast NAME --scale {smoke,small,paper}``: the FedAST paper's evidence.

``timeline`` draws who works on what under FedAST and Sync-ST.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.fedast import figures, tables
from experiments.fedast.tables import against_static, against_sync
from experiments.fedast.tasks import complete
from experiments.fedast.timelines import timelines
from experiments.paper import Experiment, Paper


def _four_tasks(study: str, *numbers: int) -> dict[str, Experiment]:
    """Curves and times of FedAST (D) beside Sync-ST, then beside FedAST (S)."""
    made = {}
    for pick, (curves, bars) in zip(
        (against_sync, against_static), (numbers[:2], numbers[2:]), strict=True
    ):
        table = tables.times(pick)
        made[f"fig{curves}"] = Experiment(study, table, figures.one_run(f"fig{curves}", pick))
        made[f"fig{bars}"] = Experiment(study, table, figures.bars(f"fig{bars}", pick))
    return made


EXPERIMENTS = {
    "comparison": Experiment(
        "comparison",
        tables.times(),
        figures.both(
            figures.methods("comparison"),
            figures.all_bars("comparison-times"),
        ),
    ),
    "shakespeare": Experiment("shakespeare", tables.finals, figures.methods("shakespeare")),
    **_four_tasks("heterogeneous", 6, 7, 23, 24),
    "fig5": Experiment("fig5", tables.identical, figures.identical_bars("fig5")),
    "fig15": Experiment("fig5", tables.identical, figures.identical_curves("fig15")),
    "fig4": Experiment("fig4", tables.finals, figures.methods("fig4")),
    "fig14": Experiment("fig4", tables.finals, figures.methods("fig14", "loss")),
    "fig8": Experiment("fig8", tables.buffers, figures.buffers("fig8")),
    "fig9": Experiment("fig9", tables.buffers, figures.buffers("fig9")),
    "fig3": Experiment("fig3", tables.active, figures.active("fig3")),
    "fig13": Experiment("fig3", tables.active, figures.active("fig13", "loss")),
    "fig2": Experiment("fig2", tables.finals, figures.methods("fig2")),
    **{
        f"fig{n}": Experiment(f"fig{n}", tables.awaited, figures.awaited(f"fig{n}"))
        for n in (10, 11, 12)
    },
    "fig16": Experiment(
        "fig16",
        tables.identical,
        figures.both(figures.identical_curves("fig16"), figures.identical_bars("fig16-times")),
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
