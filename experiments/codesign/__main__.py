"""``python -m experiments.codesign NAME``: designs of network and training, checked by training."""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.codesign import choices, crossed, grid, rules
from experiments.paper import Experiment, Paper

EXPERIMENTS = {
    "grid": Experiment("grid", grid.table),
    "crossed": Experiment("crossed", crossed.table, crossed.draw),
    "choices": Experiment("crossed", choices.table),
}
PAPER = Paper(
    "codesign",
    Path(__file__).with_name("settings"),
    EXPERIMENTS,
    rules.complete,
    pages=("choosing.md",),
)

if __name__ == "__main__":
    sys.exit(PAPER.main())
