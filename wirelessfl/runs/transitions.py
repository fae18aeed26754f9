"""What a change of clients costs: accuracy after each session's start, from the rows of a run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Row = Mapping[str, Any]
FIELDS = ("session", "session_round", "accuracy")


@dataclass(frozen=True)
class Transition:
    """From one session into the next.

    Args:
        session: the one entered, from 1.
        before: accuracy in [0, 1] that the session before ended with, on its own labels.
        mean_accuracy: mean over the first tested rounds of the session entered.
        drop: ``before`` minus the lowest accuracy from the session's start to its first rounds;
            below zero where it was better at once.
        rounds_to_recover: rounds of the session until ``before`` is reached, but for the
            tolerance; 0 where its initial model has it, None where no tested round does.
    """

    session: int
    before: float
    mean_accuracy: float
    drop: float
    rounds_to_recover: int | None


def transitions(rows: Sequence[Row], first: int = 10, tolerance: float = 0.01) -> list[Transition]:
    """One for each session after the first.

    Args:
        rows: of a run over sessions, in order.
        first: rounds at a session's start that count, those of them that were tested.
        tolerance: how far below ``before`` counts as recovered, in [0, 1].

    Returns:
        In the order of the sessions. A session of which no round has been tested yet is left out.

    Raises:
        ValueError: the rows are of no sessions, or sessions are missing, or ``first`` is below 1.
    """
    if first < 1:
        raise ValueError(f"first is {first}: at least the first round of a session must count.")
    found = []
    for earlier, later in pairwise(_by_session(rows)):
        session, before = later[0]["session"], earlier[-1]["accuracy"]
        start = [row for row in later if row["session_round"] <= first]
        trained = [row["accuracy"] for row in start if row["session_round"] >= 1]
        if not trained:
            if later[-1]["session_round"] <= first:  # the run ended at the session's start
                continue
            raise ValueError(
                f"session {session} has no row of its rounds 1 to {first}: test them, see "
                "--eval-first."
            )
        enough = (row["session_round"] for row in later if row["accuracy"] >= before - tolerance)
        found.append(
            Transition(
                session,
                before,
                statistics.mean(trained),
                before - min(row["accuracy"] for row in start),
                next(enough, None),
            )
        )
    return found


def _by_session(rows: Sequence[Row]) -> list[list[Row]]:
    sessions: list[list[Row]] = []
    for number, row in enumerate(rows):
        for name in FIELDS:
            if row.get(name) is None:
                raise ValueError(
                    f"row {number} has no {name!r}: it is of no run over sessions. Run one with "
                    "--sessions."
                )
        if not sessions or row["session"] != sessions[-1][0]["session"]:
            if row["session"] != len(sessions):
                raise ValueError(
                    f"row {number} is of session {row['session']}, and {len(sessions)} was next: "
                    "give all rows of a run, in order."
                )
            sessions.append([])
        sessions[-1].append(row)
    return sessions
