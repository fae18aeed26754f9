"""A round of several tasks: its plan, and the numbers of clients."""

from __future__ import annotations

from dataclasses import dataclass

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
        available: number of clients available in a round, drawn anew for each round.
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
