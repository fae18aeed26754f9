"""Execution of sessions: present clients, trial rounds on a copy, warm starts and their costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from wirelessfl.air.participants import RankedClients
from wirelessfl.air.plan import Plan
from wirelessfl.algorithms.step_sizes import unchanged
from wirelessfl.algorithms.warm_starts.warm_start import WarmStart
from wirelessfl.base.rows import MIB_PER_ELEMENT
from wirelessfl.engine.events import (
    Arrived,
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
from wirelessfl.engine.rounds.model_rounds import OneModel
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.learner import RoundTraining
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.sessions.attendance import Attendance, PresenceChanged
from wirelessfl.engine.sessions.processes import check_clients
from wirelessfl.engine.sessions.session_model import HeldLabels, SessionModel
from wirelessfl.training.rules import State


@dataclass
class ExtraCosts:
    """Running sums of the extra costs of warm starts, and of dropped updates.

    Args:
        extra_rounds: number of trial rounds.
        extra_uploads: number of client uploads in trial rounds.
        extra_broadcasts: number of broadcasts of a model for a trial round, or of a teacher.
        extra_seconds: simulated seconds of trial rounds and teacher broadcasts.
        extra_mib: uplink and downlink traffic of trial rounds and teacher broadcasts, mean over
            registered clients.
        dropped: number of updates of clients that left during a round.
    """

    extra_rounds: int = 0
    extra_uploads: int = 0
    extra_broadcasts: int = 0
    extra_seconds: float = 0.0
    extra_mib: float = 0.0
    dropped: int = 0

    def add_trial(self, uploads: int, seconds: float, mib: float) -> None:
        """Add the costs of a trial round.

        Args:
            uploads: number of client uploads.
            seconds: simulated seconds of the round.
            mib: uplink and downlink traffic, mean over registered clients.
        """
        self.extra_rounds += 1
        self.extra_uploads += uploads
        self.extra_broadcasts += 1
        self.extra_seconds += seconds
        self.extra_mib += mib


@dataclass
class RoundInProgress:
    """A round in progress.

    Args:
        plan: plan of the round.
        broadcast: the cloud's state when the round started.
        ends: simulated time at which the round ends, in seconds.
        left: clients that have left during the round, whose updates are dropped.
    """

    plan: Plan
    broadcast: State
    ends: float
    left: list[int] = field(default_factory=list)

    @cached_property
    def senders(self) -> frozenset[int]:
        """Clients whose updates are awaited."""
        return frozenset(self.plan.clients.tolist())


class SessionRounds(OneModel):
    """Carries out the decisions of ``SessionsScheduler``.

    Arrivals join the next session; departures are immediate. The update of a client that leaves
    during a round is dropped; the round's time, bytes and energy do not change.

    Args:
        planner: plans rounds.
        training: trains rounds.
        clock: virtual clock.
        attendance: tracks which clients are present.
        warm_start: returns the initial model of each session.
        draw: maps a number to a newly drawn model.
        labels: labels of the present clients.
        keep_momentum: as for ``SessionModel``.
    """

    def __init__(
        self,
        planner: Planner,
        training: RoundTraining,
        clock: Clock,
        attendance: Attendance,
        warm_start: WarmStart,
        *,
        draw: Callable[[int], torch.Tensor],
        labels: HeldLabels,
        keep_momentum: bool = False,
    ) -> None:
        super().__init__(planner, training, clock)
        self.attendance = attendance
        # Trial rounds draw their own channels, participants and noise, so that those of training
        # rounds do not depend on the warm start. Batches are those of the session's first rounds.
        # Capacities and static masks are fixed during the run, trial rounds included.
        self.trial_planner = replace(
            planner,
            stream=planner.stream.child("trial"),
            lr_share=unchanged,
            run_stream=planner.run_stream or planner.stream,
        )
        self.model = SessionModel(
            training,
            warm_start,
            planner.model.spec,
            draw=draw,
            labels=labels,
            possible=attendance.labels,
            trial_stream=self.trial_planner.stream,
            keep_momentum=keep_momentum,
        )
        self._departed = False
        """Whether a client has left since the last recount of the means over client states."""
        self.extras = ExtraCosts()
        self._in_progress: dict[bool, RoundInProgress] = {}
        self._due: list[Give] = []
        self._delay = 0.0

    @property
    def server(self) -> Server:
        """Server of the model; trial rounds use a copy."""
        return self.training.server

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
        self.ended = self.planner.exhausted(clients, self.training.ledger)
        return None if self.ended is None else Exhausted()

    def _able(self) -> Present:
        present = self.server.present
        able = self.planner.able(present, self.training.ledger)
        if able is None or able is present:
            return Present(len(present))
        return Present(int(able.below([self.planner.network.clients])[0]))

    def _look(self) -> bool:
        """Remove clients that have left the session; return whether a client has joined.

        A client that leaves exactly when a round ends has sent its update.
        """
        changes = self.attendance.new_changes()
        gone = [c.client for c in changes if not c.joins and c.client in self.server.present]
        for in_progress in self._in_progress.values():
            if self.clock.now < in_progress.ends:
                in_progress.left += [client for client in gone if client in in_progress.senders]
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
                self._begin()
            case Close():
                self.model.close()
            case Give():
                self._due.append(decision)
            case Merge(_, trial):
                self._merge(trial)
                return self._exhausted(None) or self._able()
        return None

    def _begin(self) -> None:
        self.model.begin()
        self._departed = False
        if self.training.teacher is not None:
            self._send_teacher()

    def _send_teacher(self) -> None:
        """Count the broadcast of the teacher to all present clients before the first round."""
        share = len(self.server.present) / self.planner.network.clients
        mib = MIB_PER_ELEMENT * self.planner.model.spec.size * share
        self._delay = self.planner.broadcast_seconds()
        self.extras.extra_broadcasts += 1
        self.extras.extra_seconds += self._delay
        self.extras.extra_mib += mib
        self.training.totals.downlink_mib += mib
        if self.planner.hierarchical:
            self.training.totals.backhaul_mib += MIB_PER_ELEMENT * self.planner.model.spec.size

    def settle(self) -> None:
        """Plan the issued rounds, with the model after all events at this time."""
        for give in self._due:
            training, planner = self.training, self.planner
            if give.trial:
                training, planner = self.model.trial, self.trial_planner
            plan = planner.plan(
                give.number,
                self.server.present,
                ledger=self.training.ledger,
                losses=training.losses,
            )
            seconds = float(plan.price.seconds.max())
            if not give.trial:
                seconds += self._delay
                self.attendance.round_started(give.number, seconds)
            self._in_progress[give.trial] = RoundInProgress(
                plan, training.server.cloud, self.clock.now + seconds
            )
            self.clock.after(seconds, Arrived(give.number, give.trial))
        self._due = []

    def _merge(self, trial: bool) -> None:
        """Train a round with the clients that have not left, and count its cost."""
        self._look()
        in_progress = self._in_progress.pop(trial)
        plan = in_progress.plan.without(np.array(in_progress.left, dtype=np.int64))
        self.extras.dropped += len(in_progress.left)
        if trial:
            self.model.trial.train(plan, in_progress.broadcast)
            self.training.count(plan, trial=True)
            uploads = self.planner.settings.edge_rounds * len(in_progress.plan.clients)
            price = in_progress.plan.price
            self.extras.add_trial(
                uploads, float(price.seconds.max()), price.uplink_mib + price.downlink_mib
            )
        else:
            self.training.train(plan, in_progress.broadcast)
            self._delay = 0.0
        if self._departed:
            (self.model.trial if trial else self.training).server.recount()
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
        return self.model.tensors()

    def snapshot(self) -> dict[str, Any]:
        """Remaining state, as plain numbers and lists."""
        return {
            "session": self.model.session,
            "extras": asdict(self.extras),
            **self.model.snapshot(),
            "attendance": self.attendance.snapshot(),
            "left": self._departed,
            "delay": self._delay,
        }

    def restore(self, tensors: dict[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        """Continue after a round or before a session is opened; training is restored."""
        self.extras = ExtraCosts(**state["extras"])
        self.model.restore(state["session"], tensors, state)
        self.attendance.restore(state["attendance"])
        self._departed, self._delay = state["left"], state["delay"]
