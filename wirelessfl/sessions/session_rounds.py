"""Execution of sessions: present clients, trial rounds on a copy, warm starts and their costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from wirelessfl.rounds.one_model import OneModel
from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.planner import Planner
from wirelessfl.rounds.step_sizes import unchanged
from wirelessfl.rounds.training import RoundTraining
from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import (
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
)
from wirelessfl.server.present import RankedClients
from wirelessfl.server.server import Server
from wirelessfl.sessions.attendance import Attendance, PresenceChanged
from wirelessfl.sessions.extra_costs import ExtraCosts
from wirelessfl.sessions.held_labels import HeldLabels
from wirelessfl.sessions.processes import check_clients
from wirelessfl.training.cohort import State
from wirelessfl.units import MIB_PER_ELEMENT
from wirelessfl.warm_starts.warm_start import Opening, Past, WarmStart


@dataclass
class Given:
    """A round in progress.

    Args:
        plan: plan of the round.
        broadcast: the cloud's state when the round started.
        ends: simulated time at which the round ends, in seconds.
        left: clients that have left during the round.
    """

    plan: Plan
    broadcast: State
    ends: float
    left: list[int] = field(default_factory=list)

    @cached_property
    def senders(self) -> frozenset[int]:
        """The participating clients."""
        return frozenset(self.plan.clients.tolist())


class SessionRounds(OneModel):
    """Carries out the decisions of ``SessionsScheduler``.

    A client that leaves during a round leaves the session. Its update is dropped; the round's time,
    bytes and energy do not change.

    Args:
        planner: plans rounds.
        training: trains rounds.
        clock: virtual clock.
        attendance: tracks which clients are present.
        warm_start: returns the initial model of each session.
        draw: maps a number to a newly drawn model.
        labels: labels of the present clients.
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
    ) -> None:
        super().__init__(planner, training, clock)
        self.attendance, self.warm_start = attendance, warm_start
        self.draw, self.labels = draw, labels
        # Trial rounds draw their own channels, participants and noise, so that those of training
        # rounds do not depend on the warm start. Batches are those of the session's first rounds.
        # Capacities and static masks are fixed during the run, trial rounds included.
        self.trial_planner = replace(
            planner,
            stream=planner.stream.child("trial"),
            lr_share=unchanged,
            run_stream=planner.run_stream or planner.stream,
        )
        self.past, self.extras = Past(), ExtraCosts()
        self.gradient: torch.Tensor | None = None
        self.weights: dict[int, float] = {}
        self.labels_before: tuple[int, ...] = ()
        self._session = 0
        self._trial: RoundTraining | None = None
        self._given: dict[bool, Given] = {}
        self._due: list[Give] = []
        self._left = False
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
        """Number of present clients that have energy left."""
        present = self.server.present
        able = self.planner.able(present, self.training.ledger)
        if able is None or able is present:
            return Present(len(present))
        return Present(int(able.below([self.planner.network.clients])[0]))

    def _look(self) -> bool:
        """Remove clients that have left the session; return whether a client has joined."""
        changes = self.attendance.new_changes()
        gone = [c.client for c in changes if not c.joins and c.client in self.server.present]
        for client in gone:
            self.server.leave(client)
            for given in self._given.values():
                # A client that leaves exactly when the round ends has sent its update.
                if client in given.senders and self.clock.now < given.ends:
                    given.left.append(client)
        if gone:
            self._left = True
            self.labels.left(gone)
        return any(change.joins for change in changes)

    def carry_out(self, decision: Decision) -> Event | None:
        """Open, begin and close sessions; start and merge rounds."""
        match decision:
            case Open(session):
                self._open(session)
                present = self.server.present
                return self._exhausted(present if len(present) else None) or self._able()
            case Begin(session):
                self._begin(session)
            case Close(session):
                self.past = self.warm_start.remember(
                    self.past, session, self.server.cloud["params"].clone(), self.gradient
                )
                self.labels_before = self.labels.held
            case Give():
                self._due.append(decision)
            case Merge(_, trial):
                self._merge(trial)
                return self._exhausted(None) or self._able()
        return None

    def _open(self, session: int) -> None:
        present = self.attendance.open(session)
        check_clients("attendance", self.attendance, "open", present, self.planner.network.clients)
        self.server.admit(present)
        self._session, self._trial, self.gradient = session, None, None
        self._left = False
        self.labels.opened(self.server.present, self.attendance.labels(session))

    def opening(self) -> Opening:
        """Create the warm start's argument for the current session."""
        return Opening(
            session=self._session,
            past=self.past,
            latest=self.server.cloud["params"].clone(),  # a copy for the warm start
            gradient=self.gradient,
            spec=self.planner.model.spec,
            draw=self.draw,
        )

    def _begin(self, session: int) -> None:
        if self._trial is not None:
            start = self.warm_start.trial_model(self.opening())
            self.gradient, self._trial = self._trial.server.cloud["params"] - start, None
        opening = self.opening()
        begun = self.warm_start.initial(opening)
        self.server.begin(begun.params)
        self.weights = begun.weights
        self._teach(opening.latest)
        self._left = False
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

    def _teach(self, latest: torch.Tensor | None) -> None:
        """Set the clients' extra loss terms for this session, and their teacher."""
        penalties = self.warm_start.penalties(self._session, self.labels_before)
        self.training.penalties = penalties
        self.training.teacher = latest if penalties else None

    def settle(self) -> None:
        """Plan the issued rounds, with the model after all events at this time."""
        for give in self._due:
            training, planner = self.training, self.planner
            if give.trial:
                training, planner = self._trial_training(), self.trial_planner
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
            self._given[give.trial] = Given(plan, training.server.cloud, self.clock.now + seconds)
            self.clock.after(seconds, Arrived(give.number, give.trial))
        self._due = []

    def _trial_training(self) -> RoundTraining:
        """Copy of the training for trial rounds; it starts from the trial model."""
        if self._trial is None:
            self._trial = self.training.branch(self.trial_planner.stream)
            self._trial.server.begin(self.warm_start.trial_model(self.opening()))
        return self._trial

    def _merge(self, trial: bool) -> None:
        """Train a round with the clients that have not left, and count its cost."""
        self._look()
        given = self._given.pop(trial)
        plan = given.plan.without(np.array(given.left, dtype=np.int64))
        self.extras.dropped += len(given.left)
        if trial:
            copy = self._trial_training()
            copy.train(plan, given.broadcast)
            self.training.count(plan, trial=True)
            self.extras.add_trial(given.plan, self.planner.settings.edge_rounds)
        else:
            self.training.train(plan, given.broadcast)
            self._delay = 0.0
        if self._left:
            (self._trial_training() if trial else self.training).server.recount()
            self._left = trial

    def fields(self, status: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Fields of a row before and after those of all runs."""
        return status, {
            "present": len(self.server.present),
            **asdict(self.extras),
            "stored_bytes": self.past.stored_bytes,
            "warm_weights": {str(s): round(w, 6) for s, w in self.weights.items()},
        }

    def priced(self) -> Mapping[str, Any]:
        """Fields of a row of prices besides those of all runs."""
        return {"extra_seconds": self.extras.extra_seconds}

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors of the state, for a checkpoint."""
        found = {**super().tensors(), **self.past.tensors()}
        for name, value in (("gradient", self.gradient), ("teacher", self.training.teacher)):
            if value is not None:
                found[f"session.{name}"] = value.clone()  # it may share memory with the cloud
        return found

    def snapshot(self) -> dict[str, Any]:
        """Remaining state, as plain numbers and lists."""
        sessions = {
            "session": self._session,
            "extras": asdict(self.extras),
            "labels": self.labels.held,
            "labels_before": self.labels_before,
            "weights": {str(s): w for s, w in self.weights.items()},
            "attendance": self.attendance.snapshot(),
            "left": self._left,
            "delay": self._delay,
        }
        return {"sessions": sessions}

    def restore(self, tensors: dict[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        """Continue after a round or before a session is opened; training is restored."""
        device, state = self.server.cloud["params"].device, state["sessions"]
        self.past = Past.of(tensors, device)
        self._session, self.extras = state["session"], ExtraCosts(**state["extras"])
        self.labels.held = tuple(state["labels"])
        self.labels.opened(self.server.present, self.attendance.labels(self._session))
        self.labels_before = tuple(state["labels_before"])
        self.gradient = _stored(tensors, "session.gradient", device)
        self.weights = {int(session): weight for session, weight in state["weights"].items()}
        self._teach(_stored(tensors, "session.teacher", device))
        self.attendance.restore(state["attendance"])
        self._left, self._delay = state["left"], state["delay"]


def _stored(
    tensors: Mapping[str, torch.Tensor], name: str, device: torch.device
) -> torch.Tensor | None:
    value = tensors.get(name)
    return None if value is None else value.to(device)
