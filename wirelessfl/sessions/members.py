"""The present clients of a run in sessions, and the updates of those that leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from channels.arrays import IntArray
from wirelessfl.schedules import Clock
from wirelessfl.server.present import PresentClients
from wirelessfl.sessions.attendance import Attendance
from wirelessfl.sessions.processes import check_clients
from wirelessfl.sessions.session_model import SessionModel


@dataclass(kw_only=True)
class InProgress:
    """A round in progress.

    Args:
        clients: [clients], clients whose updates are awaited.
        ends: simulated time at which the round ends, in seconds.
        left: clients that have left during the round, whose updates are dropped.
    """

    clients: IntArray
    ends: float
    left: list[int] = field(default_factory=list)

    @cached_property
    def senders(self) -> frozenset[int]:
        """Clients whose updates are awaited."""
        return frozenset(self.clients.tolist())


class Members:
    """The present clients of all models: arrivals join the next session, departures are immediate.

    Args:
        attendance: tracks which clients are present.
        models: the models, which have the same clients.
        clock: virtual clock.
    """

    def __init__(
        self, attendance: Attendance, models: Sequence[SessionModel[Any]], clock: Clock
    ) -> None:
        self.attendance, self.models, self.clock = attendance, models, clock
        self.departed = False
        """Whether a client has left since the last recount."""

    @property
    def present(self) -> PresentClients:
        """The clients of the session that are present now."""
        return self.models[0].server.present

    def open(self, session: int) -> None:
        """Open a session with the clients that are present now."""
        present = self.attendance.open(session)
        clients = len(self.present.mask)
        check_clients("attendance", self.attendance, "open", present, clients)
        for model in self.models:
            model.server.admit(present)
            model.open(session)
        self.departed = False

    def look(self, rounds: Iterable[InProgress]) -> bool:
        """Remove clients that have left; return whether a client has joined.

        Args:
            rounds: rounds in progress. A client that leaves exactly when a round ends has sent its
                update.
        """
        changes = self.attendance.new_changes()
        gone = [c.client for c in changes if not c.joins and c.client in self.present]
        for each in rounds:
            if self.clock.now < each.ends:
                each.left += [client for client in gone if client in each.senders]
        if gone:
            self.departed = True
            for model in self.models:
                model.leave(gone)
        return any(change.joins for change in changes)

    def recount(self, *, trial: Iterable[SessionModel[Any]] | None = None) -> None:
        """Recompute the means of client states over the present clients, if any has left.

        Args:
            trial: models of which the trial copies are recounted; None for the models themselves.
        """
        if not self.departed:
            return
        for model in self.models if trial is None else trial:
            (model.training if trial is None else model.trial).server.recount()
        self.departed = trial is not None  # the models themselves are recounted later
