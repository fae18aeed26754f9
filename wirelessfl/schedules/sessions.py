"""Sessions: rounds of the clients present, then of others, with trial rounds between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirelessfl.schedules.events import (
    Arrived,
    Begin,
    Close,
    Deadline,
    Decision,
    Event,
    Give,
    Joined,
    Merge,
    Open,
    Present,
    Report,
    Save,
    Started,
    Stop,
)


class SessionsScheduler:
    """Synchronous rounds, ``rounds`` of them in each session.

    A session has the clients present when it is opened; where there are none, it waits for
    one. Then come its trial rounds, if the warm start wants any, and its rounds. A session that all
    of its clients have left is over. Round t of session s has the number s T + t, trial v has
    s V + v among the trials, V being the maximum of any session.

    Args:
        sessions: S.
        rounds: T.
        trials: of a session, how many trial rounds come before it.
        report_every: rounds of a session between rows; the model that it begins with and its last
            one get one always.
        report_first: as many first rounds of a session get a row each.
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
        """Open a session, run trial rounds, begin, run its rounds, and close."""
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
            case Deadline():
                # Before a session has begun there is no model of its own to be tested.
                first = self._begun or self._session == 0
                return [self._report(), Stop()] if first else [Stop()]
        raise AssertionError(f"{event} is no event of this schedule")

    def _with(self, clients: int) -> list[Decision]:
        """What follows when this number of the session's clients is present."""
        if not self._begun:
            self._waiting = clients == 0 and self._tried == 0
            if self._waiting:
                return []
            if clients == 0:  # all have left during the trials: see which others are present
                self._tried = 0
                return [Open(self._session)]
            if self._tried < self.trials(self._session):
                return [self._try()]
            self._begun = True
            return [Begin(self._session), self._report(), Save(), self._give()]
        over = self._round == self.rounds or clients == 0
        reported = over or self._round % self.report_every == 0 or self._round <= self.report_first
        decisions: list[Decision] = [self._report()] if reported else []
        if not over:
            return [*decisions, Save(), self._give()]
        if self._session + 1 == self.sessions:
            return [*decisions, Stop()]
        decisions.append(Close(self._session))
        self._session, self._round, self._tried, self._begun = self._session + 1, 0, 0, False
        return [*decisions, Save(), Open(self._session)]

    def _report(self) -> Report:
        place = {"session": self._session, "session_round": self._round}
        return Report(self._done, status=place)

    def _give(self) -> Give:
        return Give(self._session * self.rounds + self._round)

    def _try(self) -> Give:
        return Give(self._session * self.max_trials + self._tried, trial=True)

    def snapshot(self) -> dict[str, Any]:
        """Where it stands; trial rounds are made again."""
        return {
            "session": self._session,
            "session_round": self._round,
            "begun": self._begun,
            "rounds_done": self._done,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._session, self._round = state["session"], state["session_round"]
        self._begun, self._done = state["begun"], state["rounds_done"]
