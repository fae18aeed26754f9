"""``python -m experiments.ra_fed NAME --scale {smoke,small,paper}``: RA-Fed and RAM-Fed compared.

``frontier`` draws what each Gamma* costs in seconds of a round, without training.
"""

from __future__ import annotations

import sys

from experiments.paper import Experiment, Paper
from experiments.ra_fed import figures, tables
from experiments.ra_fed.methods import SETTINGS, complete

EXPERIMENTS = {
    "widths": Experiment("widths", tables.accuracies, figures.widths),
    "coverage": Experiment("coverage", tables.covered, figures.coverage),
    "heterogeneity": Experiment("heterogeneity", tables.accuracies, figures.heterogeneity),
}
PAPER = Paper("ra_fed", SETTINGS, EXPERIMENTS, complete)


if __name__ == "__main__":
    sys.exit(PAPER.main())
