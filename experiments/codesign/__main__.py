"""``python -m experiments.codesign NAME``: designs of network and training, checked by training."""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.codesign import crossed, grid, rules
from experiments.paper import Experiment, Paper

EXPERIMENTS = {
    "grid": Experiment("grid", grid.table),
    "crossed": Experiment("crossed", crossed.table),
}
PAPER = Paper("codesign", Path(__file__).with_name("settings"), EXPERIMENTS, rules.complete)

if __name__ == "__main__":
    sys.exit(PAPER.main())
