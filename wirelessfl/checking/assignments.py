"""Contracts of an assignment of clients to tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from wirelessfl.checking.contract import INPUT, Contract, broken, copied, difference, unchanged
from wirelessfl.checking.runs import BASIC, CREATED, PICKLED
from wirelessfl.checking.subject import CLIENTS, Subject

TASKS = 2
SHARES = np.array([2, 1])
SAME = "chooses the same clients for equal streams"


def _begun(subject: Subject) -> Any:
    return subject.made().begin(CLIENTS, TASKS, subject.stream)


def _rounds(assignment: Any, first: int, last: int) -> list[list[np.ndarray]]:
    """Choices of some rounds, each of which is learnt from."""
    chosen = []
    for number in range(first, last):
        sets = assignment.choose(number, np.arange(CLIENTS), SHARES.copy())
        seconds = [1.0 + np.asarray(clients) for clients in sets]
        losses = [2.0 - np.asarray(clients) / CLIENTS for clients in sets]
        assignment.learn(sets, seconds, losses if assignment.wants_losses else None)
        chosen.append([np.asarray(clients) for clients in sets])
    return chosen


def _pure(subject: Subject) -> None:
    if difference(_rounds(_begun(subject), 0, 4), _rounds(_begun(subject), 0, 4)) is not None:
        broken("two assignments of equal streams choose other clients: draw from the given stream")


def _input(subject: Subject) -> None:
    assignment, available, shares = _begun(subject), np.arange(CLIENTS), SHARES.copy()
    assignment.choose(0, available, shares)
    unchanged(np.arange(CLIENTS), available, "available")
    unchanged(SHARES, shares, "shares")


def _restored(subject: Subject) -> None:
    assignment, again = _begun(subject), _begun(subject)
    _rounds(assignment, 0, 3)
    state = assignment.state()
    before = copied(dict(state))
    later = _rounds(assignment, 3, 6)
    unchanged(before, dict(state), "the result of state in learn,")
    again.restore(before)
    if difference(later, _rounds(again, 3, 6)) is not None:
        broken("after restore, it chooses other clients: store all that it has learnt in state")


CONTRACTS = (
    CREATED,
    PICKLED,
    Contract(INPUT, _input, needs=(CREATED.name,)),
    Contract(SAME, _pure, needs=(INPUT,)),
    Contract("is restored from its state", _restored, needs=(SAME,)),
    *BASIC,
)
