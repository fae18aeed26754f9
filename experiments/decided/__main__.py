"""``python -m experiments.decided NAME``: what deciding bands, clients, powers and precoders buys.

``oma``, ``crossover`` and ``energy`` price stored runs or rounds; with ``--make`` they compute
again and write their JSON files, otherwise they print and draw what is in them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from experiments import records
from experiments.decided import (
    conventions,
    crossover,
    energy,
    findings,
    masks,
    oma,
    payloads,
    precision,
    selection,
    votes,
)
from experiments.evidence import Evidence
from experiments.paper import Experiment, Paper

EXPERIMENTS = {
    "masks": Experiment("masks", masks.table, masks.draw),
    "conventions": Experiment("conventions", conventions.table, conventions.draw),
    "selection": Experiment("selection", selection.table, selection.draw),
    "votes": Experiment("votes", votes.table, votes.draw),
    "payloads": Experiment("payloads", payloads.table, payloads.draw),
    "precision": Experiment("precision", precision.table),
}
PAPER = Paper(
    "decided",
    Path(__file__).with_name("settings"),
    EXPERIMENTS,
    texts={
        "oma": lambda: oma.table(oma.load()),
        "crossover": lambda: crossover.table(crossover.load()),
        "energy": lambda: energy.table(energy.load()),
    },
    pictures={
        "oma": lambda: oma.draw(oma.load()),
        "crossover": lambda: crossover.draw(crossover.load()),
        "energy": lambda: energy.draw(energy.load()),
    },
    makers={
        "oma": lambda: records.save(oma.measure(oma.evidence(), oma.load(), _say), oma.FILE),
        "crossover": lambda: records.save(crossover.measure(show=_say), crossover.FILE),
        "energy": lambda: records.save(
            energy.measure(oma.evidence(), Evidence.of(PAPER), energy.load(), _say), energy.FILE
        ),
    },
    numbers=lambda evidence: findings.numbers(oma.evidence(), evidence),
    pages=("reference/training.md",),
)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(PAPER.main())
