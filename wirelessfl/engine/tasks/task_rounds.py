"""Synchronous rounds of several tasks on disjoint clients, with a common barrier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from solvers import allocate_requests
from wirelessfl.air.delays import Delays
from wirelessfl.engine.assignment import Assignment
from wirelessfl.engine.events import Arrived, Cancel, Decision, Give, Merge
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.ledger import TaskLedger
from wirelessfl.engine.tasks.clients import DropOuts
from wirelessfl.engine.tasks.handler import Merged, Records, Span, TaskHandler
from wirelessfl.engine.tasks.round_times import TaskRound, TaskRoundSettings, round_times
from wirelessfl.engine.tasks.uploads import GroupUpload, GroupUploads

if TYPE_CHECKING:
    from torch import Tensor

    from wirelessfl.engine.tasks.learner import TaskLearner


class TaskRounds(TaskHandler):
    """Carries out the decisions of ``SimultaneousScheduler``.

    Args:
        learners: the learner of each task.
        clock: virtual clock.
        delays: latency model.
        assignment: assigns clients to tasks.
        settings: numbers of clients.
        stream: random stream of availability and drop-outs.
        records: optional lists that receive a span per client and round, and all merges.
        uploads: simultaneous uploads of the awaited clients of a task; None if each client uploads
            when it is ready.
    """

    def __init__(
        self,
        learners: Sequence[TaskLearner],
        clock: Clock,
        delays: Delays,
        assignment: Assignment,
        settings: TaskRoundSettings,
        stream: Stream,
        records: Records | None = None,
        uploads: GroupUploads | None = None,
    ) -> None:
        super().__init__(learners, TaskLedger.none(len(learners), settings.clients), records)
        self.clock, self.delays = clock, delays
        self.assignment, self.settings = assignment, settings
        self.stream, self.uploads = stream, uploads
        self.running = list(range(len(learners)))
        self.merged: dict[int, tuple[int, int]] = {}
        self._drop_outs = DropOuts(settings.drop_out, stream.child("drop-outs"))
        self._due: list[int] = []
        self._in_progress: dict[int, TaskRound] = {}

    def carry_out(self, decision: Decision) -> None:
        """Start a round, train and merge it, or end a task."""
        match decision:
            case Give(number):
                self._due.append(number)
            case Merge(number):
                plan = self._in_progress.pop(number)
                self._count(plan)
                self._train(plan)
            case Cancel(task):
                self.running.remove(task)

    def settle(self) -> None:
        """Plan the issued rounds, with the models after all events at this time."""
        for number in self._due:
            plan = self.plan(number)
            self._in_progress[number] = plan
            self.clock.after(plan.times.length, Arrived(number))
        self._due = []

    def allocation(self) -> dict[int, int]:
        """Number of clients of each active task; clients of ended tasks go to the others."""
        total = min(sum(self.settings.shares), self.settings.available)
        weights = [float(self.settings.shares[task]) for task in self.running]
        dealt = allocate_requests(weights, total, floor=1).value
        assert dealt is not None, "there are enough clients"
        return {task: int(count) for task, count in zip(self.running, dealt, strict=True)}

    def plan(self, number: int) -> TaskRound:
        """Plan round ``number``: assign clients to tasks, and compute the times."""
        pool, allocation = np.arange(self.settings.clients), self.allocation()
        available = self.settings.available
        if available < len(pool):
            dice = self.stream.child("available").generator(number)
            pool = pool[dice.choice(len(pool), available, replace=False, shuffle=False)]
            pool.sort()
        shares = np.zeros(len(self.learners), dtype=np.int64)
        for task, count in allocation.items():
            shares[task] = count
        sets = self.assignment.choose(number, pool, shares)
        chosen = {task: sets[task] for task in allocation}
        first = self.settings.first
        numbered = number * available
        parts = {task: self.learners[task].shares(who) for task, who in chosen.items()}
        upload = None if self.uploads is None else self._upload
        cutoff = self.settings.cutoff or math.inf
        times = round_times(
            self.delays, self._drop_outs, chosen, parts, first, numbered, upload, cutoff
        )
        chosen_of, shares_of = list(chosen.values()), list(parts.values())
        return TaskRound(tuple(chosen), chosen_of, shares_of, times, self.clock.now)

    def _upload(self, task: int, clients: IntArray, chosen: IntArray) -> GroupUpload:
        """Simultaneous upload of these clients of a task, for its next merge."""
        assert self.uploads is not None
        load = self.learners[task].air_load_of_round(clients, chosen)
        return self.uploads.upload(task, self.ledger.merges[task], clients, load)

    def _count(self, plan: TaskRound) -> None:
        self.ledger.spent.include(np.concatenate(plan.chosen), plan.times.spent)
        if self.records is not None:
            self.records.spans.extend(plan.spans(self.clock.now))
        for place, task in enumerate(plan.tasks):
            clients, awaited = plan.chosen[place], plan.times.awaited[place]
            self.ledger.issued[task] += len(clients)
            self.ledger.returned[task] += int(awaited.sum())
            self.ledger.lost[task] += plan.times.lost[place]
            self.ledger.late[task] += plan.times.late[place]
            traffic = self.learners[task].traffic
            lengths = plan.shares[place] * traffic.spec.size
            self.ledger.down[task] += float(traffic.down_bits(lengths).sum())
            self.ledger.up[task] += float(traffic.up_bits(lengths[awaited]).sum())
            self.merged[task] = len(clients), int(awaited.sum())

    def _train(self, plan: TaskRound) -> None:
        """Train and merge the awaited updates of a round."""
        losses: list[FloatArray] = []
        for place, task in enumerate(plan.tasks):
            clients, learner = plan.chosen[place], self.learners[task]
            awaited = clients[plan.times.awaited[place]]
            if self.assignment.wants_losses:
                losses.append(learner.mean_losses(awaited))
            if len(awaited) and task in self.running:
                learner.train_round(awaited, clients, draw=plan.times.draws[place])
                self.ledger.merges[task] += 1
                if self.records is not None:
                    fresh = (0,) * len(awaited)
                    self.records.merges.append(Merged(task, self.clock.now, fresh))
        self._learn(plan, losses)

    def _learn(self, plan: TaskRound, losses: list[FloatArray]) -> None:
        """Report times and losses to the assignment.

        The time of a stopped client is a lower bound. If losses are reported, clients without a
        loss, or with one that is not finite after divergence, are omitted.
        """
        no_clients, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
        chosen, seconds = [no_clients] * len(self.learners), [empty] * len(self.learners)
        losses_of = [empty] * len(self.learners)
        for place, task in enumerate(plan.tasks):
            took = np.minimum(plan.times.seconds[place], plan.times.length)
            reported = np.ones(len(took), dtype=np.bool_)
            if losses:
                reported = plan.times.awaited[place].copy()
                reported[reported] = np.isfinite(losses[place])
                losses_of[task] = losses[place][np.isfinite(losses[place])]
            chosen[task], seconds[task] = plan.chosen[place][reported], took[reported]
        self.assignment.learn(chosen, seconds, losses_of if losses else None)

    def status(self, task: int) -> dict[str, Any]:
        """Further fields of a task's row, from its last round or, before that, its allocation."""
        clients, awaited = self.merged.get(task) or (self.allocation().get(task, 0), 0)
        return {
            "staleness_mean": 0.0,
            "staleness_max": 0,
            "requests": clients,
            "buffer": awaited or (clients and (self.settings.first or clients)),
            "allocation": clients,
            "updates": sum(self.ledger.returned),
            "lost": self.ledger.lost[task],
            **({} if self.settings.cutoff is None else {"late": self.ledger.late[task]}),
        }

    def under_way(self, now: float) -> list[Span]:
        """Spans of the work in progress, for a timeline that ends at ``now``."""
        return [span for plan in self._in_progress.values() for span in plan.spans(now)]

    def tensors(self) -> dict[str, Tensor]:
        """State of the assignment and energy of the clients, for a checkpoint."""
        state = self.assignment.state().items()
        return {f"assignment.{n}": torch.from_numpy(v) for n, v in state} | super().tensors()

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists, without the round in progress, which is replanned."""
        return {
            "now": self.clock.now,
            "running": self.running,
            **self.ledger.snapshot(),
            "merged": [[task, *counts] for task, counts in self.merged.items()],
        }

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint; the clock is set to its time."""
        self.assignment.restore(
            {
                n.removeprefix("assignment."): v.numpy()
                for n, v in tensors.items()
                if n.startswith("assignment.")
            }
        )
        self.clock.now = state["now"]
        self.running = list(state["running"])
        self.ledger.restore(tensors, state)
        self.merged = {task: (clients, awaited) for task, clients, awaited in state["merged"]}
