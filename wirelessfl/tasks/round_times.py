"""When the updates of a round of several tasks come in, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from channels import SharedBand
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.indexed import Draws
from wirelessfl.tasks.delays import Delays, Wireless


@dataclass(frozen=True, eq=False)
class RoundTimes:
    """Times of a round; lists have an entry for each of its tasks.

    Args:
        seconds: [clients] each, until its update is in, or would be for who is not awaited;
            infinity for who drops out, or leaves a shared band because the others were enough.
        awaited: [clients] each, whose update is merged.
        length: seconds until the last of these is in, and until it is known that others drop out
            where too few are left.
        lost: clients of each task who drop out.
        joules: of all clients, training and sending, until they are told to stop.
    """

    seconds: list[FloatArray]
    awaited: list[BoolArray]
    length: float
    lost: list[int]
    joules: float


def round_times(
    delays: Delays,
    tasks: Sequence[int],
    chosen: Sequence[IntArray],
    *,
    first: int,
    drop_out: float,
    fates: Draws,
    number: int,
) -> RoundTimes:
    """Times of one round.

    Args:
        delays: durations.
        tasks: that it trains.
        chosen: [clients] of each, sorted.
        first: k, updates of a task that are awaited; 0: all.
        drop_out: probability that a client drops out of a training, at a time uniform over it.
        fates: uniform numbers for that.
        number: of the first training; the others count on from there.
    """
    numbers = np.split(
        number + np.arange(sum(map(len, chosen))), np.cumsum([len(own) for own in chosen])[:-1]
    )
    ends, lost = [], []
    for task, clients, own in zip(tasks, chosen, numbers, strict=True):
        pairs = zip(clients.tolist(), own.tolist(), strict=True)
        took = np.array([delays.seconds(task, client, n) for client, n in pairs])
        fate = np.array([fates[n] if drop_out else 1.0 for n in own.tolist()])
        gone = fate < drop_out
        ends.append(np.where(gone, took * fate / (drop_out or 1.0), took))
        lost.append(gone)
    ready = [np.where(gone, math.inf, end) for gone, end in zip(lost, ends, strict=True)]
    joules = 0.0
    if isinstance(delays, Wireless):
        seconds, stops, joules = _uploads(delays, tasks, chosen, numbers, ready, first)
        for task, clients, end, stop in zip(tasks, chosen, ends, stops, strict=True):
            worked = np.minimum(end, stop).tolist()
            for client, own in zip(clients.tolist(), worked, strict=True):
                joules += delays.compute_joules(task, client, own)
    else:
        seconds = ready
    awaited = [_awaited(own, first) for own in seconds]
    length = 0.0
    for times, wanted, gone, end in zip(seconds, awaited, lost, ends, strict=True):
        length = max(length, *times[wanted].tolist(), 0.0)
        if wanted.sum() < (first or len(times)):  # the server waits until it knows
            length = max(length, *end[gone].tolist(), 0.0)
    return RoundTimes(seconds, awaited, length, [int(gone.sum()) for gone in lost], joules)


def _awaited(seconds: FloatArray, first: int) -> BoolArray:
    """The first k that come in; of equals the first in the list."""
    awaited = np.isfinite(seconds)
    if first:
        awaited[np.argsort(seconds, kind="stable")[first:]] = False
    return awaited


def _uploads(
    delays: Wireless,
    tasks: Sequence[int],
    chosen: Sequence[IntArray],
    numbers: Sequence[IntArray],
    ready: Sequence[FloatArray],
    first: int,
) -> tuple[list[FloatArray], list[float], float]:
    """Uploads on the band that all tasks share.

    Who is not among the first k of a task is told to stop, and leaves the band to the others.

    Returns:
        When each upload is through; when each task's clients are told to stop; joules of sending.
    """
    senders = sorted(
        (
            (float(at), place, row)
            for place, own in enumerate(ready)
            for row, at in enumerate(own)
            if math.isfinite(at)
        ),
        key=lambda sender: sender[0],
    )
    snr = [
        delays.received_snr(int(chosen[place][row]), int(numbers[place][row]))
        for _, place, row in senders
    ]
    band = SharedBand(lambda keys: delays.seconds_per_bit(np.array([snr[key] for key in keys])))
    wanted = [first or len(own) for own in chosen]
    found = [np.full(len(own), math.inf) for own in chosen]
    stops = [math.inf] * len(chosen)
    joules, coming, on_air = 0.0, 0, set[int]()

    def leaves(key: int, now: float, left: float) -> float:
        begin, place, row = senders[key]
        on_air.discard(key)
        task, client = tasks[place], int(chosen[place][row])
        sent = delays.bits(task) - left
        return delays.transmit_joules(client, snr[key], sent, now - begin)

    while on_air or coming < len(senders):
        done = band.next_done()
        if coming < len(senders) and (done is None or senders[coming][0] < done[0]):
            at, place, _ = senders[coming]
            if wanted[place] > 0:
                band.start(at, coming, delays.bits(tasks[place]))
                on_air.add(coming)
            coming += 1
            continue
        assert done is not None, "somebody is on the air"
        now, key = done
        _, place, row = senders[key]
        band.finish(now, key)
        found[place][row] = now
        joules += leaves(key, now, 0.0)
        wanted[place] -= 1
        if wanted[place] == 0:
            stops[place] = now
            for other in [own for own in on_air if senders[own][1] == place]:
                joules += leaves(other, now, band.remove(now, other))
    return found, stops, joules
