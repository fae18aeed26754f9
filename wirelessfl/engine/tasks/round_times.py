"""A round of several tasks: its plan, arrival times and energy of its updates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from channels import ChannelDraw
from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.air.delays import Delays, Wireless
from wirelessfl.engine.server.ledger import Spending
from wirelessfl.engine.tasks.clients import DropOuts
from wirelessfl.engine.tasks.handler import Span
from wirelessfl.engine.tasks.uploads import GroupUpload, UploadBand


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


@dataclass(frozen=True, eq=False)
class RoundTimes:
    """Times of a round; lists have one entry per task of the round.

    Args:
        seconds: by task, [clients], seconds until a client's update arrives, or would arrive if it
            is not awaited. Infinity for clients that drop out, or that leave a shared band because
            enough updates have arrived. In a simultaneous transmission, the time at which clients
            that are not awaited stop.
        awaited: by task, [clients] boolean, clients whose updates are merged.
        length: seconds until the last awaited update arrives and, if too few clients are left,
            until the server knows that the others dropped out.
        lost: by task, number of clients that drop out.
        late: by task, number of clients whose updates miss the cut-off.
        spent: [clients of all tasks, in order], energy for training and sending, until clients are
            stopped, and of waiting for the end of the round, unless they have dropped out.
        draws: by task, channel draw of the simultaneous transmission of the awaited clients; None
            if each client sends separately.
    """

    seconds: list[FloatArray]
    awaited: list[BoolArray]
    length: float
    lost: list[int]
    late: list[int]
    spent: Spending
    draws: Sequence[ChannelDraw | None]


def round_times(
    delays: Delays,
    drop_outs: DropOuts,
    chosen: Mapping[int, IntArray],
    shares: Mapping[int, FloatArray],
    first: int,
    number: int,
    upload: Callable[[int, IntArray, IntArray], GroupUpload] | None = None,
    cutoff: float = math.inf,
) -> RoundTimes:
    """Compute the times of one round.

    Args:
        delays: latency model.
        drop_outs: random drop-outs.
        chosen: by task, its clients, sorted.
        shares: by task, [clients], fraction of the full model's parameters that each trains.
        first: k, number of updates of a task that the round waits for; 0 for all.
        number: number of the first training run; the others have the following numbers.
        upload: computes the simultaneous upload of some clients of a task from the task, these
            clients and all clients chosen for it; None if each client uploads when it is ready.
        cutoff: seconds after which the round ends without the missing updates; clients that still
            train or send then stop. Only for clients that upload when they are ready.
    """
    entries = _entries(chosen)
    numbers = [number + rows for rows in entries]
    ends, lost = [], []
    for (task, clients), trainings in zip(chosen.items(), numbers, strict=True):
        pairs = list(zip(clients.tolist(), trainings.tolist(), strict=True))
        parts = zip(pairs, shares[task].tolist(), strict=True)
        took = [
            part * delays.seconds(task, client, n) + delays.more_seconds(task, client, part)
            for (client, n), part in parts
        ]
        drops = [drop_outs.lost_after(n, s) for (_, n), s in zip(pairs, took, strict=True)]
        lost.append(np.array([drop is not None for drop in drops], dtype=np.bool_))
        ends.append(np.array([s if d is None else d for d, s in zip(drops, took, strict=True)]))
    ready = [np.where(gone, math.inf, end) for gone, end in zip(lost, ends, strict=True)]
    spent, seconds = Spending.none(sum(map(len, entries))), ready
    draws: list[ChannelDraw | None] = [None] * len(chosen)
    if upload is not None:
        awaited = [_awaited(times, first) for times in ready]
        stops = [
            _known_at(times[in_time], end[gone], first or len(times))
            for times, in_time, gone, end in zip(ready, awaited, lost, ends, strict=True)
        ]
        seconds, draws = _group_uploads(upload, chosen, ready, awaited, stops, spent)
    elif delays.wireless is not None:
        seconds, stops = _uploads(
            delays.wireless, chosen, shares, numbers, ready, first, cutoff, spent
        )
        awaited = [_awaited(times, first) for times in seconds]
    else:
        seconds = [np.where(times <= cutoff, times, math.inf) for times in ready]
        stops = [cutoff] * len(chosen)
        awaited = [_awaited(times, first) for times in seconds]
    for (task, clients), rows, end, stop in zip(chosen.items(), entries, ends, stops, strict=True):
        worked, parts = np.minimum(end, stop).tolist(), shares[task].tolist()
        for entry, client, busy, part in zip(rows, clients.tolist(), worked, parts, strict=True):
            spent.add(entry, delays.compute_joules(task, client, busy, part))
    lost = [gone & (end <= cutoff) for gone, end in zip(lost, ends, strict=True)]
    resolved = [np.where(gone, end, cutoff) for gone, end in zip(lost, ends, strict=True)]
    length = max(
        _known_at(times[in_time], end[~in_time], first or len(times))
        for times, in_time, end in zip(seconds, awaited, resolved, strict=True)
    )
    if delays.wireless is not None:  # who has stopped or sent waits for the end of the round
        for clients, rows, end, stop, gone in zip(
            chosen.values(), entries, ends, stops, lost, strict=True
        ):
            waits = np.where(gone, 0.0, length - np.minimum(end, stop)).tolist()
            for entry, client, idle in zip(rows, clients.tolist(), waits, strict=True):
                spent.add(entry, delays.wireless.client(client).idle_watts * idle)
    late = [_late(in_time, gone, first) for in_time, gone in zip(awaited, lost, strict=True)]
    counts = [int(gone.sum()) for gone in lost]
    return RoundTimes(seconds, awaited, length, counts, late, spent, draws)


def _late(awaited: BoolArray, lost: BoolArray, first: int) -> int:
    """Number of a task's clients whose updates are missing at the end of the round."""
    if first and awaited.sum() >= first:
        return 0  # the others have been stopped
    return int((~awaited & ~lost).sum())


def _entries(chosen: Mapping[int, IntArray]) -> list[IntArray]:
    """By task, [clients], position of each client among the clients of all tasks."""
    ends = np.cumsum([len(clients) for clients in chosen.values()])
    return np.split(np.arange(ends[-1]), ends[:-1])


def _known_at(awaited: FloatArray, lost: FloatArray, count: int) -> float:
    """Seconds until the server stops waiting for a task.

    If too few clients are left, it waits until it knows that the others dropped out or are late.
    """
    times = awaited.tolist()
    if len(times) < count:
        times += lost.tolist()
    return max(times, default=0.0)


def _group_uploads(
    upload: Callable[[int, IntArray, IntArray], GroupUpload],
    chosen: Mapping[int, IntArray],
    ready: Sequence[FloatArray],
    awaited: Sequence[BoolArray],
    starts: Sequence[float],
    spent: Spending,
) -> tuple[list[FloatArray], list[ChannelDraw | None]]:
    """Simultaneous uploads of the awaited clients of each task, one task after the other.

    Returns:
        By task, [clients], seconds until a client's upload ends or the client stops; channel draws
        by task.
    """
    seconds = [times.copy() for times in ready]
    draws: list[ChannelDraw | None] = [None] * len(starts)
    tasks, entries, free = list(chosen), _entries(chosen), 0.0
    for place in sorted(range(len(starts)), key=lambda place: starts[place]):
        sends, task = awaited[place], tasks[place]
        stopped = ~sends & np.isfinite(ready[place])
        seconds[place][stopped] = starts[place]
        if sends.any():
            group = upload(task, chosen[task][sends], chosen[task])
            free = max(free, starts[place]) + group.seconds
            seconds[place][sends], draws[place] = free, group.draw
            spent.include(entries[place][sends], group.spent)
    return seconds, draws


def _awaited(seconds: FloatArray, first: int) -> BoolArray:
    """Select the first k updates to arrive; ties go to the first in the list."""
    awaited = np.isfinite(seconds)
    if first:
        awaited[np.argsort(seconds, kind="stable")[first:]] = False
    return awaited


def _uploads(
    delays: Wireless,
    chosen: Mapping[int, IntArray],
    shares: Mapping[int, FloatArray],
    numbers: Sequence[IntArray],
    ready: Sequence[FloatArray],
    first: int,
    cutoff: float,
    spent: Spending,
) -> tuple[list[FloatArray], list[float]]:
    """Uploads over the band that all tasks share.

    Clients that are not among the first k of a task stop, which frees the band for others. At the
    cut-off all stop.

    Returns:
        By task, [clients], seconds until each upload ends; by task, seconds until its clients are
        stopped.
    """
    tasks, clients_of, entries = list(chosen), list(chosen.values()), _entries(chosen)
    senders = sorted(
        (
            (float(at), place, row)
            for place, times in enumerate(ready)
            for row, at in enumerate(times)
            if math.isfinite(at) and at <= cutoff
        ),
        key=lambda sender: sender[0],
    )
    band = UploadBand(delays)
    missing = [first or len(clients) for clients in clients_of]
    arrivals = [np.full(len(clients), math.inf) for clients in clients_of]
    stops = [cutoff] * len(tasks)
    coming = 0
    on_air: dict[int, tuple[int, int]] = {}  # place of the task and row by number

    while on_air or coming < len(senders):
        done = band.next_done()
        if coming < len(senders) and (done is None or senders[coming][0] < done[0]):
            at, place, row = senders[coming]
            if missing[place] > 0:
                number, client, task = numbers[place][row], clients_of[place][row], tasks[place]
                on_air[int(number)] = place, row
                band.start(at, int(number), task, int(client), float(shares[task][row]))
            coming += 1
            continue
        assert done is not None, "an upload is in progress"
        now, ended = done
        if now > cutoff:
            for number, (place, row) in on_air.items():
                spent.add(entries[place][row], band.remove(cutoff, number))
            break
        place, row = on_air.pop(ended)
        arrivals[place][row] = now
        spent.add(entries[place][row], band.finish(now, ended))
        missing[place] -= 1
        if missing[place] == 0:
            stops[place] = now
            for stopped in [number for number, (index, _) in on_air.items() if index == place]:
                _, row = on_air.pop(stopped)
                spent.add(entries[place][row], band.remove(now, stopped))
    return arrivals, stops
