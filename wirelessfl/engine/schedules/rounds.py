"""Synchronous rounds, also in sessions, where clients change and trial rounds come first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar, Self

from wirelessfl.engine.events import (
    Arrived,
    Begin,
    Close,
    Deadline,
    Decision,
    Event,
    Exhausted,
    Give,
    Joined,
    Merge,
    Open,
    Present,
    Reached,
    Report,
    Save,
    Scheduler,
    Started,
    Stop,
)
from wirelessfl.engine.schedules.schedule import Schedule, Scope, Work


@dataclass(frozen=True)
class Rounds(Schedule):
    """Synchronous rounds of one model; each round waits for its slowest client."""

    name = "rounds"

    work: ClassVar[Work] = "rounds"

    def scheduler(self, tasks: Sequence[Self], scope: Scope) -> Scheduler:
        """Return a scheduler with one event per round."""
        return RoundsScheduler(scope.rounds[0], scope.every or 1)


class RoundsScheduler:
    """One event per global round, when all updates have arrived.

    With cells the nodes are edge servers, which are clients of the cloud. Each runs its edge rounds
    on its own clock, and the round ends when the slowest has finished, (18). A star has one node.

    Args:
        rounds: T, global rounds.
        report_every: rounds between rows; the initial and the final model always get a row.
    """

    def __init__(self, rounds: int, report_every: int = 1) -> None:
        self.rounds = rounds
        self.report_every = report_every
        self._done = 0
        self._reported = False  # whether the last round has a row

    def decide(self, event: Event) -> list[Decision]:
        """Start a round, or end one and start the next."""
        match event:
            case Started():
                # Row 0 is not in a checkpoint: a run resumed with 0 rounds done writes it again.
                first: list[Decision] = [Report(0)] if self._done == 0 else []
                return [*first, self._next()]
            case Arrived(number):
                self._done = number + 1
                decisions: list[Decision] = [Merge(number)]
                self._reported = self._done % self.report_every == 0 or self._done == self.rounds
                if self._reported:
                    decisions.append(Report(self._done))
                return [*decisions, Save(), self._next()]
            case Reached():
                return [Stop()]
            case Exhausted():
                return [Stop()] if self._reported else [Report(self._done), Stop()]
            case Deadline():
                return [Report(self._done), Stop()]
        raise AssertionError(f"unexpected event {event}")

    def _next(self) -> Decision:
        return Give(self._done) if self._done < self.rounds else Stop()

    def snapshot(self) -> dict[str, Any]:
        """The number of completed rounds."""
        return {"rounds_done": self._done}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue after ``rounds_done`` rounds."""
        self._done = index(state["rounds_done"])


class SessionsScheduler:
    """Sessions of ``rounds`` synchronous rounds each.

    A session has the clients that are present when it opens. If none is present, it waits for one.
    It starts with trial rounds, if the warm start needs them, and continues with its rounds. It
    ends early when all of its clients have left or have no energy left; if none has energy when a
    session opens, the run ends. Round t of session s has number s T + t. Trial v
    of session s has trial number s V + v, where V is the maximum number of trials of a session.

    Args:
        sessions: S, number of sessions.
        rounds: T, rounds per session.
        trials: maps a session to its number of trial rounds.
        report_every: rounds of a session between rows; the initial and the final model of a
            session always get a row.
        report_first: number of initial rounds of a session that each get a row.
    """

    def __init__(
        self,
        sessions: int,
        rounds: int,
        trials: Callable[[int], int],
        report_every: int = 1,
        report_first: int = 0,
    ) -> None:
        self.sessions, self.rounds, self.trials = sessions, rounds, trials
        self.max_trials = max(map(trials, range(sessions)))
        self.report_every, self.report_first = report_every, report_first
        self._session, self._round, self._tried = 0, 0, 0
        self._begun = self._waiting = False
        self._done = 0

    def decide(self, event: Event) -> list[Decision]:
        """Decide what the session does next: open, trial rounds, training rounds, or close."""
        match event:
            case Started():
                return [self._give()] if self._begun else [Open(self._session)]
            case Joined():
                return [Open(self._session)] if self._waiting else []
            case Arrived(number, trial):
                if trial:
                    self._tried += 1
                else:
                    self._round, self._done = self._round + 1, self._done + 1
                return [Merge(number, trial)]
            case Present(clients):
                return self._with(clients)
            case Exhausted():
                return [*self._reports(), Stop()] if self._begun else [Stop()]
            case Deadline():
                # Before a session begins it has no model to evaluate.
                first = self._begun or self._session == 0
                return [*self._reports(), Stop()] if first else [Stop()]
        raise AssertionError(f"unexpected event {event}")

    def _with(self, clients: int) -> list[Decision]:
        """Decide the next step, given the number of the session's clients that are present."""
        if not self._begun:
            self._waiting = clients == 0 and self._tried == 0
            if self._waiting:
                return []
            if clients == 0:  # all left during the trials: reopen with the clients present now
                self._tried = 0
                return [Open(self._session)]
            if self._tried < self.trials(self._session):
                return [self._try()]
            self._begun = True
            return [Begin(self._session), *self._reports(), Save(), self._give()]
        over = self._round == self.rounds or clients == 0
        reported = over or self._round % self.report_every == 0 or self._round <= self.report_first
        decisions: list[Decision] = [*self._reports()] if reported else []
        if not over:
            return [*decisions, Save(), self._give()]
        if self._session + 1 == self.sessions:
            return [*decisions, Stop()]
        decisions.append(Close(self._session))
        self._session, self._round, self._tried, self._begun = self._session + 1, 0, 0, False
        return [*decisions, Save(), Open(self._session)]

    def _reports(self) -> Sequence[Decision]:
        return [Report(self._done, status=self._status())]

    def _status(self) -> dict[str, Any]:
        return {"session": self._session, "session_round": self._round}

    def _give(self) -> Give:
        return Give(self._session * self.rounds + self._round)

    def _try(self) -> Give:
        return Give(self._session * self.max_trials + self._tried, trial=True)

    def snapshot(self) -> dict[str, Any]:
        """The current session and round; trial rounds are repeated after a resume."""
        return {
            "session": self._session,
            "session_round": self._round,
            "begun": self._begun,
            "rounds_done": self._done,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._session, self._round = index(state["session"]), index(state["session_round"])
        self._begun, self._done = state["begun"], index(state["rounds_done"])
