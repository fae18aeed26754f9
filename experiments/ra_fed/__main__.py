"""``python -m experiments.ra_fed NAME --scale {smoke,small,paper}``: the RA-Fed paper.

``frontier`` draws the seconds per round for each Gamma*, without training.
"""

from __future__ import annotations

import argparse
import sys

from experiments.comparison import against, table
from experiments.paper import Experiment, Paper
from experiments.ra_fed import figures, tables
from experiments.ra_fed.frontier import draw_frontier, frontier, frontier_table
from experiments.ra_fed.methods import SETTINGS, complete

EXPERIMENTS = {
    "widths": Experiment("widths", tables.accuracies, figures.widths, tables.by_method),
    "coverage": Experiment("coverage", tables.covered, figures.coverage),
    "masks": Experiment("masks", tables.covered, None),
    "heterogeneity": Experiment(
        "heterogeneity", tables.accuracies, figures.heterogeneity, tables.by_method
    ),
    "radio": Experiment("radio", tables.timed, figures.radio),
    "weights": Experiment("weights", tables.covered),
    "full": Experiment(
        "full",
        table(0.75, "round"),
        against("full", "masks", ("alpha", "capacities"), silent=("lr",)),
    ),
    "scale": Experiment(
        "scale",
        table(0.75, "round"),
        against("scale", "lr", "algorithm"),
        table(0.75, "round", best="lr"),
    ),
}
PAPER = Paper("ra_fed", SETTINGS, EXPERIMENTS, complete)


def draw(arguments: argparse.Namespace) -> None:
    """Print, store and draw the frontier for the network of ``radio`` with its first seed."""
    case = PAPER.study("radio", arguments.scale, arguments.data_dir).cases[0]
    found = frontier(case.config(case.seeds[0]))
    text = frontier_table(found)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "frontier.md").write_text(text, encoding="utf-8")
    print(text)
    for file in draw_frontier(found, case, arguments.out):
        print(f"drawn: {file}")


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"frontier": draw}))
