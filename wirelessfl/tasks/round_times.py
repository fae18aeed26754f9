"""Arrival times and energy of the updates in a round of several tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from channels import SharedBand
from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.tasks.delays import Delays, Wireless
from wirelessfl.tasks.drop_outs import DropOuts


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
    drop_outs: DropOuts,
    chosen: Mapping[int, IntArray],
    shares: Mapping[int, FloatArray],
    first: int,
    number: int,
) -> RoundTimes:
    """Times of one round.

    Args:
        delays: durations.
        drop_outs: who is lost.
        chosen: by task, its clients, sorted.
        shares: by task, [clients], parameters that each trains, over those of the whole model.
        first: k, updates of a task that are awaited; 0: all.
        number: of the first training; the others count on from there.
    """
    counts = np.cumsum([len(clients) for clients in chosen.values()])
    numbers = np.split(number + np.arange(counts[-1]), counts[:-1])
    ends, lost = [], []
    for (task, clients), trainings in zip(chosen.items(), numbers, strict=True):
        pairs = list(zip(clients.tolist(), trainings.tolist(), strict=True))
        parts = zip(pairs, shares[task].tolist(), strict=True)
        took = [part * delays.seconds(task, client, n) for (client, n), part in parts]
        drops = [drop_outs.lost_after(n, s) for (_, n), s in zip(pairs, took, strict=True)]
        lost.append(np.array([drop is not None for drop in drops], dtype=np.bool_))
        ends.append(np.array([s if d is None else d for d, s in zip(drops, took, strict=True)]))
    ready = [np.where(gone, math.inf, end) for gone, end in zip(lost, ends, strict=True)]
    joules = 0.0
    if delays.wireless is not None:
        seconds, stops, joules = _uploads(delays.wireless, chosen, shares, numbers, ready, first)
        for (task, clients), end, stop in zip(chosen.items(), ends, stops, strict=True):
            worked = np.minimum(end, stop).tolist()
            parts = shares[task].tolist()
            for client, busy, part in zip(clients.tolist(), worked, parts, strict=True):
                joules += delays.compute_joules(task, client, busy, part)
    else:
        seconds = ready
    awaited = [_awaited(times, first) for times in seconds]
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
    chosen: Mapping[int, IntArray],
    shares: Mapping[int, FloatArray],
    numbers: Sequence[IntArray],
    ready: Sequence[FloatArray],
    first: int,
) -> tuple[list[FloatArray], list[float], float]:
    """Uploads on the band that all tasks share.

    Clients that are not among the first k of a task are stopped, and leave the band to others.

    Returns:
        When each upload is through; when each task's clients are told to stop; joules of sending.
    """
    tasks, clients_of = list(chosen), list(chosen.values())
    senders = sorted(
        (
            (float(at), place, row)
            for place, times in enumerate(ready)
            for row, at in enumerate(times)
            if math.isfinite(at)
        ),
        key=lambda sender: sender[0],
    )
    snr = [
        delays.received_snr(int(clients_of[place][row]), int(numbers[place][row]))
        for _, place, row in senders
    ]
    bits = [
        delays.bits(tasks[place], float(shares[tasks[place]][row])) for _, place, row in senders
    ]
    band = SharedBand(lambda keys: delays.seconds_per_bit(np.array([snr[key] for key in keys])))
    wanted = [first or len(clients) for clients in clients_of]
    found = [np.full(len(clients), math.inf) for clients in clients_of]
    stops = [math.inf] * len(tasks)
    joules, coming, on_air = 0.0, 0, set[int]()

    def leaves(key: int, now: float, left: float) -> float:
        begin, place, row = senders[key]
        on_air.discard(key)
        client = int(clients_of[place][row])
        return delays.transmit_joules(client, snr[key], bits[key] - left, now - begin)

    while on_air or coming < len(senders):
        done = band.next_done()
        if coming < len(senders) and (done is None or senders[coming][0] < done[0]):
            at, place, _ = senders[coming]
            if wanted[place] > 0:
                band.start(at, coming, bits[coming])
                on_air.add(coming)
            coming += 1
            continue
        assert done is not None, "an upload is in progress"
        now, key = done
        _, place, row = senders[key]
        band.finish(now, key)
        found[place][row] = now
        joules += leaves(key, now, 0.0)
        wanted[place] -= 1
        if wanted[place] == 0:
            stops[place] = now
            for other in [key for key in on_air if senders[key][1] == place]:
                joules += leaves(other, now, band.remove(now, other))
    return found, stops, joules
