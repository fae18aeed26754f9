"""``python -m experiments.codesign NAME``: designs of network and training, checked by training.

``criteria``, ``designs``, ``methods`` and ``errors`` print and draw the numbers of
``predictions.json``. ``predictions --make`` writes that file: it prices stored runs, fits curves
and searches (with Optuna, extra ``search``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from experiments.codesign import (
    choosing,
    crossed,
    figures,
    grid,
    predictions,
    rules,
    stored,
    tables,
)
from experiments.evidence import Evidence
from experiments.paper import Experiment, Paper

EXPERIMENTS = {
    "grid": Experiment("grid", grid.table),
    "crossed": Experiment("crossed", crossed.table, crossed.draw),
    "choices": Experiment("crossed", choosing.table),
}
TEXTS = {
    "criteria": tables.criteria,
    "designs": tables.designs,
    "methods": tables.methods,
    "errors": tables.errors,
}
PICTURES = {
    "criteria": figures.scatter,
    "designs": figures.seconds,
    "methods": figures.regrets,
}
PAPER = Paper(
    "codesign",
    Path(__file__).with_name("settings"),
    EXPERIMENTS,
    rules.complete,
    texts={name: lambda make=make: make(stored.load()) for name, make in TEXTS.items()},
    pictures={
        name: lambda out, name=name, draw=draw: draw(stored.load(), out / name)
        for name, draw in PICTURES.items()
    },
    pages=("choosing.md",),
)


def evidence() -> Evidence:
    """The stored runs of scale ``small``."""
    return Evidence(PAPER, PAPER.store("small", Path("results")))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _show(name: str) -> Callable[[argparse.Namespace], None]:
    """The action that prints a table and draws its figure."""

    def act(arguments: argparse.Namespace) -> None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        text = PAPER.texts[name]()
        (arguments.out / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"{name}\n\n{text}")
        if name in PAPER.pictures:
            for file in PAPER.pictures[name](arguments.out):
                print(f"drawn: {file}")

    return act


def _predictions(arguments: argparse.Namespace) -> None:
    """All tables and figures; with ``--make``, the file is written first."""
    if arguments.make:
        stored.save(predictions.measure(evidence(), stored.load(), _say))
    for name in TEXTS:
        _show(name)(arguments)


if __name__ == "__main__":
    others = {"predictions": _predictions} | {name: _show(name) for name in TEXTS}
    sys.exit(PAPER.main(others=others))
