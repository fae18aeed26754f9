"""Every algorithm, under every schedule, over every uplink, with sessions and without."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wirelessfl import Config
from wirelessfl.algorithms import algorithm_classes
from wirelessfl.config.kinds import KINDS
from wirelessfl.errors import ConfigError

SMALL: dict[str, Any] = {
    "clients": 4,
    "rounds": 2,
    "local_steps": 2,
    "batch_size": 8,
    "hidden": (8,),
    "eval_every": 1,
    "step_seconds": 0.01,
    "checkpoint_seconds": 100.0,
    # Nothing that a run would find by timing.
    "chunk": 4,
    "replay": "off",
    "threads": 1,
    "workers": 1,
    "device": "cpu",
}
CELLS = {"cells": 2, "edge_rounds": 2, "batch_size": 8}
UNDER: dict[str, dict[str, Any]] = {
    "rounds": {},
    "buffered": {"requests": 4, "buffer": 2},
    "simultaneous": {"first": 2},
}
"""Settings of each schedule, for four clients."""
SESSIONS = {
    "sessions": 2,
    "presence": "arrivals",
    "presence_unit": "rounds",
    "arrival_rate": 1.0,
    "mean_stay": 8.0,
    "initially_present": 4,
}


@dataclass(frozen=True)
class Combination:
    """A choice of each kind.

    Args:
        algorithm, schedule, uplink: their names.
        sessions: whether clients join and leave.
    """

    algorithm: str
    schedule: str
    uplink: str
    sessions: bool = False

    def config(self, out: Path | None = None) -> Config:
        """The settings of a run of two merges.

        Args:
            out: its folder.

        Raises:
            ConfigError: the choices do not go together.
        """
        cells = algorithm_classes()[self.algorithm].topology == "cells"
        under = UNDER.get(self.schedule, {})
        if cells:  # which are the requests
            under = {key: value for key, value in under.items() if key != "requests"}
        return Config.from_flags(
            self.algorithm,
            schedule=self.schedule,
            uplink=self.uplink,
            **(SMALL | under | (CELLS if cells else {}) | (SESSIONS if self.sessions else {})),
            **({} if out is None else {"out": out}),
        )

    def refusal(self) -> str | None:
        """Why the choices do not go together; None: they do."""
        return _refusal(self)

    @property
    def pairs(self) -> frozenset[tuple[Any, ...]]:
        """Every two of its choices."""
        choices = [
            ("algorithm", self.algorithm),
            ("schedule", self.schedule),
            ("uplink", self.uplink),
            ("sessions", self.sessions),
        ]
        return frozenset(itertools.combinations(choices, 2))


@cache
def _refusal(combination: Combination) -> str | None:
    """Asked several times; settings take milliseconds to resolve."""
    try:
        combination.config()
    except ConfigError as error:
        return str(error)
    return None


def combinations() -> list[Combination]:
    """All of them."""
    kinds = [sorted(KINDS[kind].classes()) for kind in ("schedule", "uplink")]
    return [
        Combination(*choices)
        for choices in itertools.product(sorted(algorithm_classes()), *kinds, (False, True))
    ]


def pairwise(valid: Iterable[Combination]) -> list[Combination]:
    """Some of the combinations, in which every two choices that go together occur together.

    The next one is always that with most pairs that are still missing.
    """
    left = list(valid)
    missing = set().union(*(combination.pairs for combination in left))
    chosen: list[Combination] = []
    while missing:
        best = max(left, key=lambda combination: len(combination.pairs & missing))
        chosen.append(best)
        missing -= best.pairs
        left.remove(best)
    return chosen


def table(all_of_them: Sequence[Combination]) -> str:
    """Which combinations run, as a page: an algorithm a line, the uplinks that it runs over."""
    schedules = sorted(KINDS["schedule"].classes())
    refused = {combination: combination.refusal() for combination in all_of_them}
    columns = [(schedule, False) for schedule in schedules] + [("rounds", True)]
    lines = [
        "| algorithm | " + " | ".join([f"`{name}`" for name in schedules] + ["sessions"]) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for algorithm in sorted(algorithm_classes()):
        cells = []
        for schedule, sessions in columns:
            uplinks = [
                c.uplink
                for c in all_of_them
                if (c.algorithm, c.schedule, c.sessions) == (algorithm, schedule, sessions)
                and refused[c] is None
            ]
            everything = len(uplinks) == len(KINDS["uplink"].classes())
            cells.append("all" if everything else ", ".join(uplinks) or "-")
        lines.append(f"| `{algorithm}` | " + " | ".join(cells) + " |")
    reasons: dict[str, list[Combination]] = {}
    for combination, reason in refused.items():
        if reason is not None:
            reasons.setdefault(reason, []).append(combination)
    listed = [
        f"- {_short(found)}: {reason}" for reason, found in sorted(reasons.items(), key=_first)
    ]
    return PAGE.format(
        table="\n".join(lines),
        refused="\n".join(listed),
        runs=sum(reason is None for reason in refused.values()),
        total=len(refused),
    )


PAGE = """# Which choices go together

Every algorithm under every schedule over every uplink, with the uplinks over which it runs.
Sessions are those of rounds. {runs} of {total} combinations run; each other one is refused before
any work is done, in the line that stands below. `make product` runs them all on a small data set
and prints this page.

{table}

## What is refused

{refused}
"""


def _short(found: Sequence[Combination]) -> str:
    """The combinations that have a reason in common."""
    some = found[0]
    with_sessions = ", sessions" if some.sessions else ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"`{some.algorithm}`, `{some.schedule}`, `{some.uplink}`{with_sessions}{more}"


def _first(entry: tuple[str, Sequence[Combination]]) -> tuple[str, ...]:
    some = entry[1][0]
    return (some.algorithm, some.schedule, some.uplink, str(some.sessions))
