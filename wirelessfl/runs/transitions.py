"""Accuracy after each change of clients, from the rows of a run in sessions."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from wirelessfl.divergence import as_mean_value, has_diverged

Row = Mapping[str, Any]
FIELDS = ("session", "session_round", "accuracy")


@dataclass(frozen=True)
class Transition:
    """Transition from one session to the next.

    Args:
        session: the later session, from 1.
        before: final accuracy of the earlier session on its labels, in [0, 1]. As in all means, a
            test of a diverged model counts as 0.
        mean_accuracy: mean accuracy over the first evaluated rounds of the later session.
        drop: ``before`` minus the lowest accuracy of the initial model and the first rounds;
            negative if all of these accuracies are higher.
        rounds_to_recover: rounds until the accuracy is at least ``before`` minus the tolerance; 0
            if the initial model reaches this accuracy, None if no evaluated round does. Diverged
            models do not.
    """

    session: int
    before: float
    mean_accuracy: float
    drop: float
    rounds_to_recover: int | None


def transitions(rows: Sequence[Row], first: int = 10, tolerance: float = 0.01) -> list[Transition]:
    """Compute one transition per session after the first.

    Args:
        rows: all rows of a run in sessions, in order.
        first: number of rounds at the start of a session to evaluate; rounds without a row are
            skipped.
        tolerance: deficit to ``before`` at which the accuracy counts as recovered, in [0, 1].

    Returns:
        Transitions in the order of the sessions; a last session without evaluated rounds is left
        out.

    Raises:
        ValueError: the run has no sessions, sessions are missing, the first rounds of a session
            were not evaluated, or ``first`` < 1.
    """
    if first < 1:
        raise ValueError(f"first is {first}: give a number of rounds >= 1.")
    found = []
    for earlier, later in pairwise(_by_session(rows)):
        session, before = later[0]["session"], as_mean_value(earlier[-1])
        start = [row for row in later if row["session_round"] <= first]
        trained = [as_mean_value(row) for row in start if row["session_round"] >= 1]
        if not trained:
            if later[-1]["session_round"] <= first:  # the run ended at the session's start
                continue
            raise ValueError(
                f"session {session} has no row for rounds 1 to {first}: evaluate them with "
                "--eval-first."
            )
        enough = (
            row["session_round"]
            for row in later
            if not has_diverged(row) and row["accuracy"] >= before - tolerance
        )
        found.append(
            Transition(
                session,
                before,
                statistics.mean(trained),
                before - min(as_mean_value(row) for row in start),
                next(enough, None),
            )
        )
    return found


def _by_session(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each session, the first one of each round."""
    sessions: list[list[Row]] = []
    if any("session" in row and "accuracy" not in row for row in rows):
        raise ValueError(
            "rows have no accuracy, as in regression: transitions compare accuracies. Plot the "
            "loss instead, or give rows of a run with classes."
        )
    for number, row in enumerate(rows):
        for name in FIELDS:
            if row.get(name) is None:
                raise ValueError(
                    f"row {number} has no {name!r}: give evaluated rows of a run with --sessions."
                )
        if not sessions or row["session"] != sessions[-1][0]["session"]:
            if row["session"] != len(sessions):
                raise ValueError(
                    f"row {number} belongs to session {row['session']}, but session "
                    f"{len(sessions)} was expected: give all rows of a run in order."
                )
            sessions.append([])
        # The time limit adds a row if it ends a session after an evaluated round.
        if not sessions[-1] or row["session_round"] != sessions[-1][-1]["session_round"]:
            sessions[-1].append(row)
    return sessions
