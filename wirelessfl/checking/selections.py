"""Contracts of a selection of clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from channels import EqualSlots, Load
from channels.arrays import FloatArray, IntArray
from wirelessfl.checking.contract import INPUT, Contract, broken, copied, unchanged
from wirelessfl.checking.runs import BASIC, CREATED, PICKLED, variant
from wirelessfl.checking.subject import CLIENTS, Subject
from wirelessfl.selection import Candidates
from wirelessfl.server.ledger import Ledger

TIMES = 8
"""Number of choices that are compared: two random ones are often equal."""
ARRAYS = ("clients", "node", "counts", "weights")


def _candidates(subject: Subject) -> Candidates:
    """All clients of two cells in a round after the first; two of each cell take part."""
    network, ledger = subject.network(), Ledger(CLIENTS)
    ledger.add(np.arange(0, CLIENTS, 2), np.full(CLIENTS // 2, 0.5), np.ones(CLIENTS // 2, bool))

    def losses(clients: IntArray, samples: int | None) -> FloatArray:
        return 1.0 + np.asarray(clients) / CLIENTS

    return Candidates(
        round=1,
        clients=np.arange(CLIENTS),
        node=network.cell_of.copy(),
        counts=np.array([2, 2]),
        network=network,
        access=EqualSlots(),
        radio=True,
        ledger=ledger,
        stream=subject.stream,
        weights=np.full(CLIENTS, 1 / CLIENTS),
        find_draw=lambda clients: network.draw(subject.stream, 1, clients),
        find_load=lambda: Load(1e6, 1000.0),
        find_losses=losses,
    )


def _chosen(made: Any, candidates: Candidates) -> list[int]:
    return sorted(map(int, made.select(candidates)))


def _pure(subject: Subject) -> None:
    made = subject.made()
    one, *others = (_chosen(made, _candidates(subject)) for _ in range(TIMES))
    two = next((found for found in others if found != one), one)
    if one != two:
        broken(
            f"select chooses {one}, and {two} of equal candidates: draw from candidates.stream, "
            "and keep no state in the object"
        )


def _input(subject: Subject) -> None:
    made, candidates = subject.made(), _candidates(subject)
    before = copied({name: getattr(candidates, name) for name in ARRAYS})
    channels, joules = candidates.draw.h.copy(), candidates.ledger.joules
    made.select(candidates)
    for name in ARRAYS:
        unchanged(before[name], getattr(candidates, name), f"candidates.{name}")
    unchanged(channels, candidates.draw.h, "candidates.draw.h")
    unchanged(joules, candidates.ledger.joules, "candidates.ledger")


CONTRACTS = (
    CREATED,
    PICKLED,
    Contract(INPUT, _input, needs=(CREATED.name,)),
    Contract("chooses the same clients for equal candidates", _pure, needs=(INPUT,)),
    *BASIC,
    variant("works in cells", algorithm="hfedavg", cells=2, clients_per_round=4),
)
