"""Synchronous work on several tasks: rounds of disjoint clients, with a common end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from channels import SharedBand
from channels.streams import Stream
from solvers import allocate_requests
from wirelessfl.schedules import Clock
from wirelessfl.schedules.base import Arrived, Cancel, Decision, Event, Give, Merge
from wirelessfl.simulation.assignment import Assignment
from wirelessfl.simulation.asynchronous import Merged
from wirelessfl.simulation.delays import Delays, FloatArray, IntArray, Wireless
from wirelessfl.simulation.draws import uniform
from wirelessfl.simulation.requests import Span
from wirelessfl.uplinks.base import BoolArray


@dataclass(frozen=True, eq=False)
class TaskRound:
    """A round before it is trained; lists have an entry for each of its tasks.

    Args:
        tasks: that it trains.
        chosen: [clients] each, who trains what.
        seconds: [clients] each, until its update is in; infinity for who drops out, or is told to
            stop because the others were enough.
        awaited: [clients] each, whose update is merged.
        length: seconds until the last of these is in.
        lost: clients who drop out.
        joules: of all clients, training and sending.
    """

    tasks: tuple[int, ...]
    chosen: list[IntArray]
    seconds: list[FloatArray]
    awaited: list[BoolArray]
    length: float
    lost: int
    joules: float


class RoundModel(Protocol):
    """What rounds need to know of a task's model; ``Learner`` is one."""

    def train_round(self, clients: IntArray) -> None:
        """Train these clients from the present model, and merge their updates."""

    def losses(self, clients: IntArray) -> FloatArray:
        """Loss of the present model on the data of each."""


class TaskRounds:
    """Carries out what ``Simultaneous`` decides.

    Args:
        models: of each task.
        clock: virtual seconds.
        delays: durations.
        assignment: who trains what.
        shares: [tasks], clients of each in a round.
        clients: N.
        available: clients who take work in a round, drawn anew for each.
        first: k, updates of a task that are awaited; 0: all.
        drop_out: probability that a client drops out of a training, at a time uniform over it.
        stream: randomness of availability and drop-outs.
        spans: gets a line for every client of a round; None: nobody wants them.
        merges: gets a line for every merge; likewise.
    """

    def __init__(
        self,
        models: Sequence[RoundModel],
        clock: Clock,
        delays: Delays,
        assignment: Assignment,
        *,
        shares: Sequence[int],
        clients: int,
        available: int,
        first: int,
        drop_out: float,
        stream: Stream,
        spans: list[Span] | None = None,
        merges: list[Merged] | None = None,
    ) -> None:
        self.models, self.clock, self.delays = models, clock, delays
        self.assignment, self.shares = assignment, tuple(shares)
        self.clients, self.available, self.first = clients, available, first
        self.drop_out, self.stream = drop_out, stream
        self.spans, self.merges = spans, merges
        self.running = list(range(len(models)))
        self.sent, self.returned = [0] * len(models), [0] * len(models)
        self.lost = 0
        self.joules = 0.0
        self._fates = uniform(stream.child("drop-outs"))
        self._due: list[int] = []
        self._given: dict[int, TaskRound] = {}
        self._begun: dict[int, float] = {}

    def happened(self, what: Event) -> Event:
        """All that happens are events."""
        return what

    def carry_out(self, decision: Decision) -> None:
        """Give out a round, train and merge it, or end a task."""
        match decision:
            case Give(work):
                self._due.append(work)
            case Merge(work):
                del self._begun[work]
                self._merge(self._given.pop(work))
            case Cancel(task):
                self.running.remove(task)

    def settle(self) -> None:
        """The models that are sent are those at the end of the instant, of tasks that go on."""
        for work in self._due:
            plan = self.plan(work)
            self._given[work], self._begun[work] = plan, self.clock.now
            self.clock.after(plan.length, Arrived(work))
        self._due = []

    def allocation(self) -> dict[int, int]:
        """Clients of each task that goes on: those of ended ones are dealt out to the others."""
        total = min(sum(self.shares), self.available)
        weights = [float(self.shares[task]) for task in self.running]
        dealt = allocate_requests(weights, total, floor=1).value
        assert dealt is not None, "there are more clients than tasks"
        return {task: int(count) for task, count in zip(self.running, dealt, strict=True)}

    def plan(self, number: int) -> TaskRound:
        """Round ``number``: who trains what, and how long it takes."""
        pool = np.arange(self.clients)
        if self.available < self.clients:
            order = self.stream.child("available").generator(number).permutation(self.clients)
            pool = np.sort(order[: self.available])
        shares = np.zeros(len(self.models), dtype=np.int64)
        for task, count in self.allocation().items():
            shares[task] = count
        tasks = tuple(self.running)
        sets = self.assignment.choose(number, pool, shares)
        chosen = [sets[task] for task in tasks]
        base, seconds, until, lost = number * self.available, [], [], []
        for task, clients in zip(tasks, chosen, strict=True):
            numbers = range(base, base + len(clients))
            base += len(clients)
            took = [self.delays.seconds(task, c, n) for c, n in zip(clients, numbers, strict=True)]
            fates = np.array([self._fates[n] if self.drop_out else 1.0 for n in numbers])
            drops = fates < self.drop_out
            with np.errstate(divide="ignore", invalid="ignore"):
                until.append(np.where(drops, np.array(took) * fates / self.drop_out, 0.0))
            seconds.append(np.where(drops, math.inf, took))
            lost.append(drops)
        joules = 0.0
        if isinstance(self.delays, Wireless):
            seconds, joules = self._uploads(number, tasks, chosen, seconds)
        awaited = [self._awaited(own) for own in seconds]
        ends = [0.0]
        for own, wanted, drops, end in zip(seconds, awaited, lost, until, strict=True):
            ends += own[wanted].tolist()
            if wanted.sum() < (self.first or len(own)):  # the server waits until it knows
                ends += end[drops].tolist()
        missed = int(sum(drops.sum() for drops in lost))
        return TaskRound(tasks, chosen, seconds, awaited, max(ends), missed, joules)

    def _awaited(self, seconds: FloatArray) -> BoolArray:
        """The first k that come in; of equals the first in the list."""
        awaited = np.isfinite(seconds)
        if self.first:
            awaited[np.argsort(seconds, kind="stable")[self.first :]] = False
        return awaited

    def _uploads(
        self,
        number: int,
        tasks: tuple[int, ...],
        chosen: list[IntArray],
        ready: list[FloatArray],
    ) -> tuple[list[FloatArray], float]:
        """When each upload is through, on the band that all share; and joules of the round.

        Who is not among the first k of a task is told to stop, and leaves the band to the others.
        """
        delays = self.delays
        assert isinstance(delays, Wireless)
        senders = [
            (float(at), place, task, int(client))
            for place, (task, clients, own) in enumerate(zip(tasks, chosen, ready, strict=True))
            for client, at in zip(clients, own, strict=True)
            if math.isfinite(at)
        ]
        senders.sort(key=lambda sender: sender[0])
        base = number * self.clients
        snr = [delays.received_snr(client, base + client) for _, _, _, client in senders]
        band = SharedBand(lambda keys: delays.seconds_per_bit(np.array([snr[k] for k in keys])))
        wanted = [self.first or len(own) for own in chosen]
        found = [np.full(len(own), math.inf) for own in chosen]
        joules, coming, on_air = 0.0, 0, set[int]()
        while on_air or coming < len(senders):
            done = band.next_done()
            if coming < len(senders) and (done is None or senders[coming][0] < done[0]):
                at, place, task, _ = senders[coming]
                if wanted[place] > 0:
                    band.start(at, coming, delays.bits(task))
                    on_air.add(coming)
                coming += 1
                continue
            assert done is not None, "somebody is on the air"
            now, key = done
            begin, place, task, client = senders[key]
            band.finish(now, key)
            on_air.discard(key)
            found[place][np.searchsorted(chosen[place], client)] = now
            joules += delays.joules(task, client, snr[key], now - begin)
            wanted[place] -= 1
            if wanted[place] == 0:
                for other in [own for own in on_air if senders[own][1] == place]:
                    band.remove(now, other)
                    on_air.discard(other)
        return found, joules

    def _merge(self, plan: TaskRound) -> None:
        self.lost += plan.lost
        self.joules += plan.joules
        if self.spans is not None:
            self.spans += _spans(plan, self.clock.now - plan.length, self.clock.now)
        losses: list[FloatArray] = []
        for task, clients, awaited in zip(plan.tasks, plan.chosen, plan.awaited, strict=True):
            self.sent[task] += len(clients)
            self.returned[task] += int(awaited.sum())
            model = self.models[task]
            if self.assignment.wants_losses:
                losses.append(model.losses(clients[awaited]))
            if awaited.any() and task in self.running:
                model.train_round(clients[awaited])
                if self.merges is not None:
                    none = (0,) * int(awaited.sum())
                    self.merges.append(Merged(task, self.clock.now, none))
        self._learn(plan, losses)

    def _learn(self, plan: TaskRound, losses: list[FloatArray]) -> None:
        nobody, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        chosen, seconds = [nobody] * len(self.models), [nothing] * len(self.models)
        told = [nothing] * len(self.models)
        for place, task in enumerate(plan.tasks):
            awaited = plan.awaited[place]
            chosen[task] = plan.chosen[place][awaited]
            seconds[task] = plan.seconds[place][awaited]
            if losses:
                told[task] = losses[place]
        self.assignment.learn(chosen, seconds, told if losses else None)

    def under_way(self, now: float) -> list[Span]:
        """What clients are at, for a picture that ends now."""
        return [
            span
            for plan, begun in zip(self._given.values(), self._begun.values(), strict=True)
            for span in _spans(plan, begun, now)
        ]

    def tensors(self) -> dict[str, Tensor]:
        """What the assignment has learnt, for a checkpoint."""
        return {f"assignment.{n}": torch.from_numpy(v) for n, v in self.assignment.state().items()}

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists; the round under way is planned again."""
        return {
            "now": self.clock.now,
            "running": self.running,
            "sent": self.sent,
            "returned": self.returned,
            "lost": self.lost,
            "joules": self.joules,
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on from a checkpoint; the clock is where it was."""
        self.assignment.restore(
            {
                n.removeprefix("assignment."): v.numpy()
                for n, v in tensors.items()
                if n.startswith("assignment.")
            }
        )
        self.clock.now = state["now"]
        self.running, self.lost, self.joules = state["running"], state["lost"], state["joules"]
        self.sent, self.returned = list(state["sent"]), list(state["returned"])


def _spans(plan: TaskRound, begin: float, now: float) -> list[Span]:
    """What the clients of a round have been at since it began."""
    spans = []
    for task, clients, seconds, awaited in zip(
        plan.tasks, plan.chosen, plan.seconds, plan.awaited, strict=True
    ):
        for client, took, done in zip(clients.tolist(), seconds, awaited, strict=True):
            end = min(begin + float(took), now)
            how = ("done" if begin + took <= now else "under way") if done else "cancelled"
            spans.append(Span(task, client, begin, end, how))
    return spans
