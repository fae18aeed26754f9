"""A round of several tasks: its plan, and the numbers of clients."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from channels.arrays import FloatArray, IntArray
from wirelessfl.tasks.records import Span
from wirelessfl.tasks.round_times import RoundTimes


@dataclass(frozen=True, eq=False)
class TaskRound:
    """Plan of a round.

    Args:
        tasks: tasks of the round.
        chosen: by task, its clients [clients].
        shares: by task, fraction of the full model's parameters that each client trains, [clients].
        times: arrival times of the updates.
        begun: simulated time at which the round started, in seconds.
    """

    tasks: tuple[int, ...]
    chosen: list[IntArray]
    shares: list[FloatArray]
    times: RoundTimes
    begun: float

    @property
    def awaited(self) -> IntArray:
        """[clients], clients of all tasks whose updates are awaited."""
        pairs = zip(self.chosen, self.times.awaited, strict=True)
        return np.concatenate([clients[awaited] for clients, awaited in pairs])

    def without(self, clients: Collection[int]) -> TaskRound:
        """Drop the updates of clients that left during the round; its times do not change."""
        gone = np.array([*clients], dtype=np.int64)
        pairs = zip(self.chosen, self.times.awaited, strict=True)
        awaited = [here & ~np.isin(chosen, gone) for chosen, here in pairs]
        return replace(self, times=replace(self.times, awaited=awaited))

    def spans(self, now: float) -> list[Span]:
        """Spans of the clients' work, from the start of the round to at most ``now``."""
        spans = []
        for place, task in enumerate(self.tasks):
            seconds, awaited = self.times.seconds[place], self.times.awaited[place]
            for client, took, done in zip(
                self.chosen[place].tolist(), seconds, awaited, strict=True
            ):
                end = min(self.begun + float(took), now)
                how = ("done" if self.begun + took <= now else "under way") if done else "cancelled"
                spans.append(Span(task, client, self.begun, end, how))
        return spans


@dataclass(frozen=True)
class TaskRoundSettings:
    """Numbers of clients in rounds of several tasks.

    Args:
        clients: N, number of clients.
        available: number of clients available in a round, drawn anew for each round; of fewer
            clients, the same fraction.
        shares: [tasks], number of clients of each task per round.
        first: k, number of updates of a task that a round waits for; 0 for all.
        drop_out: probability that a client drops out of a round, at a uniform time of its training.
        cutoff: seconds after which a round ends without the missing updates; None for no cut-off.
    """

    clients: int
    available: int
    shares: tuple[int, ...]
    first: int = 0
    drop_out: float = 0.0
    cutoff: float | None = None

    def available_of(self, clients: int) -> int:
        """Number of clients available in a round, of so many; at least 1 if there are any."""
        if clients == self.clients:
            return self.available
        return min(clients, max(1, round(clients * self.available / self.clients)))
