"""``python -m experiments.codesign NAME``: designs of network and training, checked by training.

``criteria``, ``fixed``, ``methods`` and ``errors`` print and draw the numbers of
``predictions.json``. ``predictions --make`` writes that file: it prices stored runs, fits curves
and searches (with Optuna, extra ``search``).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.codesign import (
    choosing,
    crossed,
    designs,
    figures,
    findings,
    grid,
    predictions,
    stored,
    tables,
)
from experiments.decided import oma
from experiments.evidence import Evidence
from experiments.paper import Experiment, Paper

EXPERIMENTS = {
    "grid": Experiment("grid", grid.table),
    "masks": Experiment("masks", grid.table),
    "designs": Experiment("designs", designs.table),
    "crossed": Experiment("crossed", crossed.table, crossed.draw),
    "choices": Experiment("crossed", choosing.table, short=choosing.short),
}
TEXTS = {
    "criteria": tables.criteria,
    "fixed": tables.designs,
    "methods": tables.methods,
    "errors": tables.errors,
}
PICTURES = {
    "criteria": figures.scatter,
    "fixed": figures.seconds,
    "methods": figures.regrets,
}
PAPER = Paper(
    "codesign",
    Path(__file__).with_name("settings"),
    EXPERIMENTS,
    grid.complete,
    texts={name: lambda make=make: make(stored.load()) for name, make in TEXTS.items()}
    | {"cells": lambda: choosing.cells(oma.evidence().study("cells"))},
    pictures={name: lambda draw=draw: draw(stored.load()) for name, draw in PICTURES.items()},
    numbers=lambda evidence: findings.numbers(stored.load(), evidence),
    pages=("guides/choosing.md", "results/crossed.md"),
)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _predictions(arguments: argparse.Namespace) -> None:
    """All tables and figures; with ``--make``, the file is written first."""
    if arguments.make:
        stored.save(predictions.measure(Evidence.of(PAPER), stored.load(), _say, stored.save))
    for name in TEXTS:
        PAPER.show(name, arguments.out)


def _made(arguments: argparse.Namespace) -> None:
    """The designs off the grid, as a table; with ``--make``, new ones are made first."""
    made = designs.load()
    if arguments.make:
        fresh: list[designs.Made] = []
        for one in designs.make(Evidence.of(PAPER), made, _say):
            fresh.append(one)
            rest = [old for old in made if old[:3] not in {new[:3] for new in fresh}]
            designs.save([*fresh, *rest])
    print(f"{len(designs.load())} designs, see {designs.SETTINGS}")


if __name__ == "__main__":
    sys.exit(PAPER.main(others={"predictions": _predictions, "made": _made}))
