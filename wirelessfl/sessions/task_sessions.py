"""Sessions of several tasks: the present clients are dealt to the tasks in each common round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import (
    Arrived,
    Begin,
    Cancel,
    Close,
    Decision,
    Event,
    Give,
    Joined,
    Merge,
    Open,
    Present,
)
from wirelessfl.sessions.attendance import Attendance, PresenceChanged
from wirelessfl.sessions.extra_costs import ExtraCosts
from wirelessfl.sessions.members import InProgress, Members
from wirelessfl.sessions.session_model import SessionModel
from wirelessfl.tasks.learner import TaskLearner
from wirelessfl.tasks.records import Span
from wirelessfl.tasks.task_handler import Sums, TaskHandler
from wirelessfl.tasks.task_round import TaskRound
from wirelessfl.tasks.task_rounds import TaskRounds
from wirelessfl.tasks.traffic import Traffic
from wirelessfl.units import BITS_PER_ELEMENT, MIB_PER_ELEMENT


@dataclass(kw_only=True)
class TaskRoundInProgress(InProgress):
    """A round in progress.

    Args:
        plan: plan of the round.
        rounds: carries it out.
    """

    plan: TaskRound
    rounds: TaskRounds


class TaskSessions(TaskHandler):
    """Carries out the decisions of ``TaskSessionsScheduler``.

    In each round of a session, the assignment deals the present clients to the tasks, which train
    as in ``TaskRounds``. Each task has a memory of past sessions, an initial model, trial rounds
    and a teacher of its own; their costs are sums over the tasks. A client that leaves during a
    round leaves the session. Its update is dropped, also if it has already arrived; the round's
    time, bytes and energy do not change.

    Trial rounds are common to the tasks, too. They have their own channels, durations and
    assignment, which knows nothing of other rounds. The version of a model is the number of the
    round, which names its masks, step sizes and noise.

    Args:
        rounds: trains and merges rounds, and counts their costs.
        models: [tasks], what each model has in sessions; their training is that of ``rounds``.
        clock: virtual clock.
        attendance: tracks which clients are present.
        trial_rounds: carries out a trial round of the given copies, one per task.
        traffic: what models and updates transmit.
    """

    def __init__(
        self,
        rounds: TaskRounds,
        models: Sequence[SessionModel[TaskLearner]],
        clock: Clock,
        attendance: Attendance,
        trial_rounds: Callable[[Sequence[TaskLearner]], TaskRounds],
        traffic: Traffic,
    ) -> None:
        super().__init__(traffic)
        self.rounds, self.models, self.clock = rounds, models, clock
        self.attendance, self.trial_rounds = attendance, trial_rounds
        self.members = Members(attendance, models, clock)
        self.extras = ExtraCosts()
        self._given: dict[bool, TaskRoundInProgress] = {}
        self._due: list[Give] = []
        self._delay = 0.0

    def sums(self) -> Sums:
        """What has been sent and spent, with trial rounds and updates that were dropped."""
        return self.rounds.sums()

    def start(self) -> None:
        """Put the next change of clients on the clock."""
        self.attendance.start()

    def happened(self, what: Event | PresenceChanged) -> Event | None:
        """Process a clock entry: clients joined or left, or a round ended."""
        if not isinstance(what, PresenceChanged):
            return what
        return Joined() if self.members.look(self._given.values()) else None

    def carry_out(self, decision: Decision) -> Event | None:
        """Open, begin and close sessions; start and merge rounds; end tasks."""
        match decision:
            case Open(session):
                self.members.open(session)
                return Present(len(self.members.present))
            case Begin():
                self._begin()
            case Close():
                for model in self._running:
                    model.close()
            case Give():
                self._due.append(decision)
            case Merge(_, trial):
                self._merge(trial)
                return Present(len(self.members.present))
            case Cancel():
                self.rounds.carry_out(decision)
        return None

    @property
    def _running(self) -> list[SessionModel[TaskLearner]]:
        """The models of the tasks that have not ended."""
        return [self.models[task] for task in self.rounds.running]

    def _begin(self) -> None:
        for model in self._running:
            model.begin()
        self.members.departed = False
        taught = [task for task in self.rounds.running if self._teaches(task)]
        if taught:
            self._send_teachers(taught)

    def _teaches(self, task: int) -> bool:
        return self.models[task].training.teacher is not None

    def _send_teachers(self, tasks: Sequence[int]) -> None:
        """Count the broadcast of each teacher to all present clients before the first round."""
        clients, present = self.rounds.settings.clients, len(self.members.present)
        wireless = self.rounds.delays.wireless
        rate = None if wireless is None else wireless.downlink_bps
        sizes = [self.models[task].spec.size for task in tasks]
        self._delay = 0.0 if rate is None else sum(sizes) * BITS_PER_ELEMENT / rate
        self.extras.extra_broadcasts += len(tasks)
        self.extras.extra_seconds += self._delay
        self.extras.extra_mib += MIB_PER_ELEMENT * sum(sizes) * present / clients
        for task, size in zip(tasks, sizes, strict=True):
            self.rounds.down[task] += present * size / self.traffic.elements[task].down

    def settle(self) -> None:
        """Plan the issued rounds, with the models after all events at this time."""
        for give in self._due:
            if give.trial:
                # A task that has ended has no trial copy, and is not in the round.
                of_task = {task: self.models[task].trial for task in self.rounds.running}
                learners = [of_task.get(n, m.training) for n, m in enumerate(self.models)]
                rounds = self.trial_rounds(learners)
                rounds.running = [*of_task]
            else:
                learners, rounds = [model.training for model in self.models], self.rounds
            for task in rounds.running:
                rounds.versions[task] = learners[task].server.version = give.number
            plan = rounds.plan(give.number, np.flatnonzero(self.members.present.mask))
            seconds = plan.times.length
            if not give.trial:
                seconds += self._delay
                self.attendance.round_started(give.number, seconds)
            self._given[give.trial] = TaskRoundInProgress(
                clients=plan.awaited, ends=self.clock.now + seconds, plan=plan, rounds=rounds
            )
            self.clock.after(seconds, Arrived(give.number, give.trial))
        self._due = []

    def _merge(self, trial: bool) -> None:
        """Train a round with the clients that have not left, and count its cost."""
        self.members.look(self._given.values())
        given = self._given.pop(trial)
        given.rounds.merge(given.plan, given.left)
        self.extras.dropped += len(given.left)
        if trial:
            self._add_trial(given)
        else:
            self._delay = 0.0
        self.members.recount(trial=self._running if trial else None)

    def _add_trial(self, given: TaskRoundInProgress) -> None:
        """Add the costs of a trial round to those of the run."""
        costs = given.rounds
        self.rounds.add_costs(costs)
        mib = self.traffic.fields(costs.up, costs.down, costs.returned)
        self.extras.add_trial(
            sum(costs.returned),
            given.plan.times.length,
            mib["uplink_mib"] + mib["downlink_mib"],
            broadcasts=len(given.plan.tasks),
        )

    def status(self, task: int) -> dict[str, Any]:
        """Further fields of a task's row: those of common rounds, and those of sessions."""
        present = len(self.members.present)
        return {
            **self.rounds.status(task, present),
            "present": present,
            **asdict(self.extras),
            **self.models[task].fields(),
        }

    def under_way(self, now: float) -> list[Span]:
        """Spans of the work in progress, for a timeline that ends at ``now``."""
        return [span for given in self._given.values() for span in given.plan.spans(now)]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors of the state, without those of the learners, for a checkpoint."""
        found = self.rounds.tensors()
        for task, model in enumerate(self.models):
            found |= {f"{_mark(task)}{name}": value for name, value in model.tensors().items()}
        return found

    def snapshot(self) -> dict[str, Any]:
        """Remaining state, as plain numbers and lists; a round in progress is planned again."""
        sessions = {
            "session": self.models[0].session,
            "extras": asdict(self.extras),
            "models": [model.snapshot() for model in self.models],
            "attendance": self.attendance.snapshot(),
            "left": self.members.departed,
            "delay": self._delay,
        }
        return {**self.rounds.snapshot(), "sessions": sessions}

    def restore(self, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
        """Continue after a round or before a session is opened; the learners are restored."""
        self.rounds.restore(tensors, state)
        sessions = state["sessions"]
        self.extras = ExtraCosts(**sessions["extras"])
        for task, (model, stored) in enumerate(zip(self.models, sessions["models"], strict=True)):
            mark = _mark(task)
            found = {n.removeprefix(mark): v for n, v in tensors.items() if n.startswith(mark)}
            model.restore(sessions["session"], found, stored)
        self.attendance.restore(sessions["attendance"])
        self.members.departed, self._delay = sessions["left"], sessions["delay"]


def _mark(task: int) -> str:
    """Prefix of the names of a task's tensors."""
    return f"sessions{task}."
