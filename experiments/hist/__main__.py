"""``python -m experiments.hist NAME --scale {smoke,small,paper}``: HIST's figures and tables."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from experiments.comparison import against, table
from experiments.hist import air, air_tables, cells, figures, partitions, periods, sizes, tables
from experiments.paper import Experiment, Paper

EXPERIMENTS = {
    "fig3": Experiment("fig3", tables.traffic, figures.fig3),
    "fig4": Experiment("fig3", tables.traffic, figures.fig4, tables.savings),
    "fig5": Experiment(
        "fig5",
        partial(periods.table, cases_of=partial(periods.of_length, longest=True)),
        periods.fig5,
    ),
    "periods": Experiment(
        "fig5",
        partial(
            periods.table,
            rounds=(5, 10, 15),
            cases_of=partial(periods.of_length, longest=False),
        ),
        periods.periods,
    ),
    "fig6a": Experiment("fig6", sizes.cells_table, partial(sizes.convergence, against="round")),
    "fig6b": Experiment(
        "fig6", sizes.cells_table, partial(sizes.convergence, against="sim_seconds")
    ),
    "fig6c": Experiment("fig6", sizes.cells_table, sizes.fig6c),
    "fig7a": Experiment("fig7a", air_tables.snr_rows, air.fig7a),
    "fig7b": Experiment(("fig7b", "longer"), air_tables.snr_latencies, air.fig7b),
    "fig7c": Experiment("fig7c", air_tables.client_latencies, air.fig7c),
    "fig7d": Experiment("fig7d", air_tables.convention_rows, air.fig7d),
    "fig8": Experiment("fig8", tables.schemes, partitions.fig8),
    "cells": Experiment("cells", cells.cells_table, cells.cells_figure),
    "table1": Experiment("table1", tables.targets),
    "table2": Experiment("table2", tables.targets),
    "ablations": Experiment("ablations", tables.ablation_rows),
    "labels": Experiment("labels", partial(tables.traffic, goals=(0.7, 0.8)), figures.labels),
    "scale": Experiment(
        "scale",
        partial(table, target=0.8),
        partial(against, setting="lr", panel="cells", quantity="round", target=0.8),
        partial(table, target=0.8, best="lr"),
    ),
    "noise": Experiment("noise", partial(table, target=0.75), air.noise),
    "cap": Experiment("cap", sizes.caps_table, sizes.cap),
    "steps": Experiment("steps", periods.table, periods.steps),
}
PAPER = Paper("hist", Path(__file__).with_name("settings"), EXPERIMENTS)

if __name__ == "__main__":
    sys.exit(PAPER.main())
