"""What a run consists of: its regime, and the facts in which regimes differ."""

from __future__ import annotations

from enum import StrEnum


class Regime(StrEnum):
    """What a run consists of.

    Code asks for the facts below, not for a regime. What needs an object for each regime, the
    builders, has a table of them: ``setup/building.py``.
    """

    ROUNDS = "rounds"
    """Rounds of one model."""
    SESSIONS = "sessions"
    """Sessions of such rounds, between which clients join and leave."""
    TASKS = "tasks"
    """Requests to clients, or rounds shared by tasks."""
    CELLS = "cells"
    """Rounds of cells, which the cloud merges asynchronously."""

    @property
    def common_rounds(self) -> bool:
        """Whether the run is one sequence of rounds of one model at all nodes."""
        return self is Regime.ROUNDS

    @property
    def synchronous(self) -> bool:
        """Whether the order of the merges of a model does not depend on seconds."""
        return self in (Regime.ROUNDS, Regime.SESSIONS)

    @property
    def in_sessions(self) -> bool:
        """Whether clients join and leave between sessions, which count their own rounds."""
        return self is Regime.SESSIONS

    @property
    def of_tasks(self) -> bool:
        """Whether clients get work for one of several tasks, which can depend on accuracies."""
        return self is Regime.TASKS

    @property
    def merges_cells(self) -> bool:
        """Whether the cloud merges cells asynchronously, so that each has its own round."""
        return self is Regime.CELLS
