"""``python -m experiments.ra_fed NAME --scale {smoke,small,paper}``: the RA-Fed paper.

``frontier`` draws the seconds per round for each Gamma*, without training.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from experiments.comparison import table
from experiments.paper import Experiment, Paper, show
from experiments.ra_fed import figures, tables
from experiments.ra_fed.frontier import draw_frontier, frontier, frontier_table
from experiments.ra_fed.methods import SETTINGS, complete

EXPERIMENTS = {
    "widths": Experiment("widths", tables.accuracies, figures.widths),
    "core": Experiment("widths", tables.core),
    "coverage": Experiment(("coverage", "weights"), tables.covered, figures.coverage),
    "masks": Experiment("masks", tables.covered),
    "words": Experiment("words", tables.accuracies, short=tables.core),
    "heterogeneity": Experiment("heterogeneity", tables.accuracies),
    "radio": Experiment("radio", tables.timed, figures.radio),
    "full": Experiment("full", partial(table, target=0.75), figures.full),
    "scale": Experiment("scale", partial(table, target=0.75), figures.scale),
}
PAPER = Paper(
    "ra_fed",
    SETTINGS,
    EXPERIMENTS,
    complete,
    numbers=lambda evidence: tables.numbers(evidence.study("widths")),
)


def draw(arguments: argparse.Namespace) -> None:
    """Print, store and draw the frontier for the network of ``radio`` with its first seed."""
    case = PAPER.study("radio", arguments.scale, arguments.data_dir).cases[0]
    curve = frontier(case.config(case.seeds[0]))
    picture = partial(draw_frontier, curve, case)
    show("frontier", frontier_table(curve), arguments.out, picture)


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"frontier": draw}))
