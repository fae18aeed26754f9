"""``python -m experiments.hist NAME --scale {smoke,small,paper}``: HIST's figures and tables."""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.comparison import against, table
from experiments.hist import air, cells, figures, tables
from experiments.paper import Experiment, Paper, both

EXPERIMENTS = {
    "fig3": Experiment("fig3", tables.traffic, figures.fig3),
    "fig4": Experiment("fig3", tables.traffic, figures.fig4),
    "fig5": Experiment("fig5", tables.periods(5, 10, 15), figures.periods("fig5")),
    "fig6": Experiment("fig6", tables.masks, figures.fig6),
    "fig7a": Experiment("fig7a", air.snr_rows, air.fig7a),
    "fig7b": Experiment("fig7b", air.snr_latencies, air.fig7b),
    "fig7c": Experiment("fig7c", air.client_latencies, air.fig7c),
    "fig7d": Experiment("fig7d", air.convention_rows, air.fig7d),
    "fig8": Experiment("fig8", tables.schemes, figures.fig8),
    "cells": Experiment("cells", cells.cells_table, cells.cells_figure),
    "table1": Experiment("table1", tables.targets),
    "table2": Experiment("table2", tables.targets),
    "ablations": Experiment("ablations", tables.ablation_rows),
    "labels": Experiment(
        "labels",
        table((0.7, 0.8), "round", "uplink_mib", "sim_seconds"),
        both(
            against("labels", "cells"),
            against("labels-traffic", "cells", quantity="uplink_mib", target=0.7),
        ),
    ),
    "scale": Experiment(
        "scale",
        table(0.8, "round"),
        against("scale", "lr", "cells", "round", target=0.8),
        table(0.8, "round", best="lr"),
    ),
    "noise": Experiment(
        "noise",
        table(0.75, "round"),
        against("noise", "snr_db", "lr", reference=("uplink", "tdma")),
    ),
    "cap": Experiment(
        "cap",
        table(0.8, "round", "sim_seconds"),
        against(
            "cap",
            "size_cap",
            "slowdown",
            quantity="sim_seconds",
            target=0.8,
            reference=("mask_sizes", "uniform"),
        ),
    ),
    "steps": Experiment("steps", tables.periods(20, 60, 100, 200), figures.periods("steps")),
}
PAPER = Paper("hist", Path(__file__).with_name("settings"), EXPERIMENTS)

if __name__ == "__main__":
    sys.exit(PAPER.main())
