"""Contracts of an observer."""

from __future__ import annotations

from typing import Any

from wirelessfl.checking.contract import Contract, broken, copied, difference
from wirelessfl.checking.runs import BASIC, CREATED, TIME, TRAINS
from wirelessfl.checking.subject import Subject
from wirelessfl.observers import Observer, Running
from wirelessfl.runs.observing import check_observers

ROWS = "does not change rows"
Rows = list[dict[str, Any]]


class Spy(Observer):
    """Keeps the rows as they are written, and as they are when the run ends."""

    def __init__(self) -> None:
        self.written: Rows = []
        self.left: Rows = []

    def row(self, run: Running, row: dict[str, Any]) -> None:
        """See :class:`Observer`."""
        self.written.append(copied(row))

    def end(self, run: Running) -> None:
        """See :class:`Observer`."""
        self.left = copied(list(run.rows))


def _created(subject: Subject) -> None:
    check_observers([subject.made()])
    subject.config()


def _rows(subject: Subject) -> None:
    """Rows and parameters are those of a run without it, as far as both go."""
    spy = Spy()
    seen = subject.run(observers=[spy, *subject.observers()])
    if difference(spy.written, spy.left) is not None:
        broken("it changes rows, which others use: work on a copy, dict(row)")
    alone = subject.run(observers=[])
    for one, two in zip(alone.rows, seen.rows, strict=False):
        for name in dict.fromkeys([*one, *two]):
            if name not in TIME and difference(one.get(name), two.get(name)) is not None:
                broken(
                    f"{name} of round {one['round']} is {two.get(name)!r}, and {one.get(name)!r} "
                    "without the observer: only read the run"
                )
    if len(alone.rows) == len(seen.rows) and difference(dict(alone.params), dict(seen.params)):
        broken("the final parameters are not those without the observer: only read the run")


CONTRACTS = (
    Contract(CREATED.name, _created),
    BASIC[0],
    Contract(ROWS, _rows, needs=(TRAINS,)),
    *BASIC[1:],
)
