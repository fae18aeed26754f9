"""Execution of sessions: present clients, trial rounds on a copy, warm starts and their costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import torch

from wirelessfl.air.participants import RankedClients
from wirelessfl.algorithms.step_sizes import unchanged
from wirelessfl.algorithms.warm_starts.warm_start import WarmStart
from wirelessfl.base.rows import MIB_PER_ELEMENT
from wirelessfl.engine.events import (
    Begin,
    Close,
    Decision,
    Event,
    Exhausted,
    Give,
    Joined,
    Merge,
    Open,
    Present,
    Report,
)
from wirelessfl.engine.loop import RowFields
from wirelessfl.engine.rounds.model_rounds import ModelRounds, OneModel
from wirelessfl.engine.server.ledger import ExtraCosts
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.sessions.attendance import Attendance, PresenceChanged
from wirelessfl.engine.sessions.processes import check_clients
from wirelessfl.engine.sessions.session_model import HeldLabels, SessionModel


class SessionRounds(OneModel):
    """Carries out the decisions of ``SessionsScheduler``, with the rounds of one model.

    Arrivals join the next session; departures are immediate. The update of a client that leaves
    during a round is dropped; the round's time, bytes and energy do not change.

    Args:
        rounds: the rounds of the sessions.
        attendance: tracks which clients are present.
        warm_start: returns the initial model of each session.
        draw: maps a number to a newly drawn model.
        labels: labels of the present clients.
        keep_momentum: as for ``SessionModel``.
    """

    def __init__(
        self,
        rounds: ModelRounds,
        attendance: Attendance,
        warm_start: WarmStart,
        *,
        draw: Callable[[int], torch.Tensor],
        labels: HeldLabels,
        keep_momentum: bool = False,
    ) -> None:
        planner, learner = rounds.planner, rounds.learner
        super().__init__(planner, learner, rounds.clock, rounds.ledger)
        self.attendance = attendance
        # Trial rounds draw their own channels, participants and noise, so that those of training
        # rounds do not depend on the warm start. Batches are those of the session's first rounds.
        # Capacities and static masks are fixed during the run, trial rounds included.
        trial_planner = replace(
            planner,
            stream=planner.stream.child("trial"),
            lr_share=unchanged,
            run_stream=planner.run_stream or planner.stream,
        )
        self.rounds = {
            False: rounds,
            True: ModelRounds(trial_planner, learner, self.clock, self.ledger, trial=True),
        }
        """The rounds of the sessions, and their trial rounds."""
        self.left: dict[bool, list[int]] = {False: [], True: []}
        """Clients that have left during the round in progress, whose updates are dropped."""
        self.model = SessionModel(
            learner,
            warm_start,
            planner.model.spec,
            draw=draw,
            labels=labels,
            possible=attendance.labels,
            trial_stream=trial_planner.stream,
            keep_momentum=keep_momentum,
        )
        self._departed = False
        """Whether a client has left since the last recount of the means over client states."""
        self.extras = ExtraCosts()

    @property
    def server(self) -> Server:
        """Server of the model; trial rounds use a copy."""
        return self.learner.server

    def start(self) -> None:
        """Put the next change of clients on the clock."""
        self.attendance.start()

    def happened(self, what: Event | PresenceChanged) -> Event | None:
        """Process a clock entry: clients joined or left, or a round ended."""
        if not isinstance(what, PresenceChanged):
            return what
        return Joined() if self._look() else None

    def _exhausted(self, clients: RankedClients | None) -> Exhausted | None:
        """The event if none of these clients, or of all, has energy left; notes why."""
        self.ended = self.planner.exhausted(clients, self.ledger)
        return None if self.ended is None else Exhausted()

    def _able(self) -> Present:
        present = self.server.present
        able = self.planner.able(present, self.ledger)
        if able is None or able is present:
            return Present(len(present))
        return Present(int(able.below([self.planner.network.clients])[0]))

    def _look(self) -> bool:
        """Remove clients that have left the session; return whether a client has joined.

        A client that leaves exactly when a round ends has sent its update.
        """
        changes = self.attendance.new_changes()
        gone = [c.client for c in changes if not c.joins and c.client in self.server.present]
        for trial, rounds in self.rounds.items():
            for entry in rounds.in_progress.values():
                if gone and self.clock.now < entry.ends:
                    senders = set(entry.plan.clients.tolist())
                    self.left[trial] += [client for client in gone if client in senders]
        if gone:
            self._departed = True
            self.model.leave(gone)
        return any(change.joins for change in changes)

    def _open(self, session: int) -> None:
        present = self.attendance.open(session)
        check_clients("attendance", self.attendance, "open", present, len(self.server.present.mask))
        self.server.admit(present)
        self.model.open(session)
        self._departed = False

    def carry_out(self, decision: Decision) -> Event | None:
        """Open, begin and close sessions; start and merge rounds."""
        match decision:
            case Open(session):
                self._open(session)
                present = self.server.present
                return self._exhausted(present if len(present) else None) or self._able()
            case Begin():
                self.model.begin()
                self._departed = False
                if self.learner.teacher is not None:
                    self._send_teacher()
            case Close():
                self.model.close()
            case Give(_, trial):
                if trial:
                    self.rounds[True].learner = self.model.trial
                self.rounds[trial].carry_out(decision)
            case Merge(number, trial):
                self._merge(number, trial)
                return self._exhausted(None) or self._able()
        return None

    def _send_teacher(self) -> None:
        """Count the broadcast of the teacher to all present clients before the first round."""
        share = len(self.server.present) / self.planner.network.clients
        mib = MIB_PER_ELEMENT * self.planner.model.spec.size * share
        self.rounds[False].delay = seconds = self.planner.broadcast_seconds()
        self.extras.extra_broadcasts += 1
        self.extras.extra_seconds += seconds
        self.extras.extra_mib += mib
        self.ledger.totals.downlink_mib += mib
        if self.planner.hierarchical:
            self.ledger.totals.backhaul_mib += MIB_PER_ELEMENT * self.planner.model.spec.size

    def settle(self) -> None:
        """Plan the issued rounds, with the model after all events at this time."""
        for trial, rounds in self.rounds.items():
            rounds.present = self.server.present
            for number in rounds.settle():
                if not trial:
                    seconds = rounds.in_progress[number].seconds
                    self.attendance.round_started(number, seconds)

    def _merge(self, number: int, trial: bool) -> None:
        """Train a round with the clients that have not left, and count its cost."""
        self._look()
        left, self.left[trial] = self.left[trial], []
        plan = self.rounds[trial].merge(number, left)
        self.extras.dropped += len(left)
        if trial:
            self.extras.add_trial(plan)
        if self._departed:
            (self.model.trial if trial else self.learner).server.recount()
            self._departed = trial  # the model itself is recounted later

    def fields(self, report: Report) -> RowFields:
        """Number of session and round, costs so far, and the state of the session."""
        return RowFields(
            {**report.status, "round": report.round},
            super().costs(),
            {
                "present": len(self.server.present),
                **asdict(self.extras),
                **self.model.fields(),
            },
        )

    def names(self, report: Report) -> dict[str, Any]:
        """Number of the session, and of the round in it."""
        return dict(report.status)

    def costs(self) -> dict[str, Any]:
        """Running totals of the rounds, and the seconds of warm starts."""
        return super().costs() | {"extra_seconds": self.extras.extra_seconds}

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors of the state, for a checkpoint."""
        return super().tensors() | self.model.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Remaining state, as plain numbers and lists."""
        return {
            **super().snapshot(),
            "session": self.model.session,
            "extras": asdict(self.extras),
            **self.model.snapshot(),
            "attendance": self.attendance.snapshot(),
            "left": self._departed,
            "delay": self.rounds[False].delay,
        }

    def restore(self, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        """Continue after a round or before a session is opened; the learner is restored."""
        super().restore(tensors, state)
        self.extras = ExtraCosts(**state["extras"])
        self.model.restore(state["session"], tensors, state)
        self.attendance.restore(state["attendance"])
        self._departed, self.rounds[False].delay = state["left"], state["delay"]
