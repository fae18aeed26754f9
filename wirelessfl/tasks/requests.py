"""Training requests on their way: client queues, first come first served, and what comes back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np

from channels import SharedBand
from channels.arrays import FloatArray, IntArray
from channels.indexed import uniform
from channels.streams import Stream
from wirelessfl.schedules import Clock
from wirelessfl.schedules.base import Deadline, Event, Lost, Returned, Started, Tick
from wirelessfl.tasks.delays import Delays, Wireless
from wirelessfl.tasks.drop_outs import DropOuts
from wirelessfl.tasks.records import Records, Span


@dataclass(slots=True, eq=False)
class Request:
    """A training request at a client.

    Args:
        number: of all requests of the run, from 0.
        task: whose model is trained.
        client: who trains it.
        version: merges of the model that had been made when it was sent.
        issued: when, in seconds.
        seconds: of training, and of the upload too where that is part of the same draw.
        lost_after: when the client drops out, in seconds of training; None: it does not.
        begun: when the client began; None: it waits in the client's queue.
        dropped: whether the task has ended meanwhile.
    """

    number: int
    task: int
    client: int
    version: int
    issued: float
    seconds: float
    lost_after: float | None = None
    begun: float | None = None
    dropped: bool = False


class Trained(NamedTuple):
    """A client has finished its local steps, or dropped out of them."""

    request: Request


class Uploaded(NamedTuple):
    """The next upload that shares the band would be through, if none has begun meanwhile."""

    change: int


class Requests:
    """Who works on what, and when it is done; nothing is trained here.

    A client works on one request at a time, in the order in which they came. Everything is drawn
    by the number of the request, so that no draw depends on the order of events.

    Args:
        clock: virtual seconds.
        delays: durations.
        clients: N.
        stream: randomness of choices and drop-outs.
        busy_clients: maximum number of clients that have work at a time; when there are that many,
            requests go to one of them (the published simulator's availability). None: no limit.
        drop_out: probability that a client drops out of a training, at a time uniform over it. Its
            update is lost; the client goes on with its queue.
        choose: whom request ``number`` goes to; None: anybody, uniformly. Where a random share of
            the clients, independent of the past, accepts requests, the law is the same.
        records: gets a span for every piece of work that is over; None: nobody wants them.
    """

    def __init__(
        self,
        clock: Clock,
        delays: Delays,
        clients: int,
        stream: Stream,
        *,
        busy_clients: int | None = None,
        drop_out: float = 0.0,
        choose: Callable[[int], int] | None = None,
        records: Records | None = None,
    ) -> None:
        self.clock, self.delays, self.clients = clock, delays, clients
        self.busy_clients, self.records = busy_clients, records
        self.issued = 0
        self.joules = 0.0
        self.queues: dict[int, deque[Request]] = {}
        self.out: dict[int, Request] = {}
        self._places = uniform(stream.child("clients"))
        self.drop_outs = DropOuts(drop_out, stream.child("drop-outs"))
        self.choose = choose
        self._busy: list[int] = []
        self._at: dict[int, int] = {}
        self.band: SharedBand | None = None
        self._snrs: dict[int, float] = {}
        self._change = 0
        if isinstance(delays, Wireless):
            self.band = SharedBand(self._seconds_per_bit)

    def ask(self, task: int, version: int) -> Request:
        """Send a request to a random client, now."""
        number = self.issued
        self.issued = number + 1
        client = self._client(number)
        seconds = self.delays.seconds(task, client, number)
        lost_after = self.drop_outs.lost_after(number, seconds)
        request = Request(number, task, client, version, self.clock.now, seconds, lost_after)
        self.out[number] = request
        queue = self.queues.get(client)
        if queue is None:
            self.queues[client] = deque((request,))
            if self.busy_clients is not None:
                self._at[client] = len(self._busy)
                self._busy.append(client)
            self._begin(request)
        else:
            queue.append(request)
        return request

    def _client(self, number: int) -> int:
        if self.choose is not None:
            return self.choose(number)
        place = self._places[number]
        if self.busy_clients is not None and len(self._busy) >= self.busy_clients:
            return self._busy[int(place * len(self._busy))]
        return int(place * self.clients)

    def _begin(self, request: Request) -> None:
        request.begun = self.clock.now
        lost = request.lost_after
        self.clock.after(request.seconds if lost is None else lost, Trained(request))

    def happened(self, what: Any) -> Event | None:
        """What the schedule is told of something that the clock has come to; None: nothing."""
        if type(what) is Trained:
            request = what.request
            if request.dropped:
                return None
            if request.lost_after is not None:
                self._over(request, "lost")
                return Lost(request.task)
            if self.band is not None:
                self._upload(request)
                return None
            self._over(request, "done")
            return Returned(request.number, request.task, request.version)
        if type(what) is Uploaded:
            return self._uploaded(what)
        event: Event = what
        return event

    def _over(self, request: Request, how: str) -> None:
        """The client is through with its request, and begins with the next in its queue."""
        del self.out[request.number]
        if isinstance(self.delays, Wireless) and request.begun is not None:
            seconds = self.clock.now - request.begun
            self.joules += self.delays.compute_joules(request.task, request.client, seconds)
        if self.records is not None and request.begun is not None:
            span = Span(request.task, request.client, request.begun, self.clock.now, how)
            self.records.spans.append(span)
        queue = self.queues[request.client]
        queue.popleft()
        if queue:
            self._begin(queue[0])
        else:
            self._idle(request.client)

    def _idle(self, client: int) -> None:
        del self.queues[client]
        if self.busy_clients is not None:  # the last one takes the place in the list
            place, last = self._at.pop(client), self._busy.pop()
            if last != client:
                self._busy[place], self._at[last] = last, place

    def cancel(self, task: int) -> None:
        """Drop all requests of ``task``; who works on one goes on with the next in its queue."""
        dropped = [request for request in self.out.values() if request.task == task]
        for request in dropped:
            request.dropped = True
        for client in dict.fromkeys(request.client for request in dropped):
            queue = self.queues[client]
            first = queue[0]
            kept = deque(request for request in queue if not request.dropped)
            if first.dropped:
                self._stop(first)
                kept.appendleft(first)
            self.queues[client] = kept
            if first.dropped:
                self._over(first, "cancelled")
        for request in dropped:
            self.out.pop(request.number, None)

    def snapshot(self) -> dict[str, Any]:
        """All that is out, and the clock's future, as plain numbers, lists and texts."""
        future: list[list[Any]] = []
        for seconds, what in self.clock.queued():
            match what:
                case Trained(request):
                    if not request.dropped:
                        future.append([seconds, "trained", request.number])
                case Uploaded(change):
                    future.append([seconds, "uploaded", change])
                case Tick(number):
                    future.append([seconds, "tick", number])
                case Deadline():
                    future.append([seconds, "deadline", 0])
                case Started():
                    future.append([seconds, "started", 0])
                case _:
                    raise AssertionError(f"{what} is nothing that the clock holds between instants")
        return {
            "now": self.clock.now,
            "future": future,
            "issued": self.issued,
            "joules": self.joules,
            "out": [list(astuple(request)) for request in self.out.values()],
            "queues": [[c, [r.number for r in queue]] for c, queue in self.queues.items()],
            "busy": self._busy,
            "band": None if self.band is None else self.band.snapshot(),
            "snrs": [[number, snr] for number, snr in self._snrs.items()],
            "change": self._change,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.issued, self.joules = state["issued"], state["joules"]
        self.out = {request[0]: Request(*request) for request in state["out"]}
        self.queues = {c: deque(self.out[n] for n in numbers) for c, numbers in state["queues"]}
        self._busy = list(state["busy"])
        self._at = {client: place for place, client in enumerate(self._busy)}
        self._snrs, self._change = dict(state["snrs"]), state["change"]
        if self.band is not None:
            self.band.restore(state["band"])
        made: dict[str, Callable[[int], Any]] = {
            "trained": lambda number: Trained(self.out[number]),
            "uploaded": Uploaded,
            "tick": Tick,
            "deadline": lambda number: Deadline(),
            "started": lambda number: Started(),
        }
        future = [(seconds, made[kind](number)) for seconds, kind, number in state["future"]]
        self.clock.requeue(state["now"], future)

    # Uploads that share a band.

    def _seconds_per_bit(self, numbers: IntArray) -> FloatArray:
        """Of the uploads of these requests, while there are no others."""
        assert isinstance(self.delays, Wireless)
        return self.delays.seconds_per_bit(np.array([self._snrs[n] for n in numbers.tolist()]))

    def _upload(self, request: Request) -> None:
        assert self.band is not None
        assert isinstance(self.delays, Wireless)
        self._snrs[request.number] = self.delays.received_snr(request.client, request.number)
        self.band.start(self.clock.now, request.number, self.delays.bits(request.task))
        self._changed()

    def _uploaded(self, what: Uploaded) -> Event | None:
        if what.change != self._change:
            return None
        assert self.band is not None
        assert isinstance(self.delays, Wireless)
        found = self.band.next_done()
        assert found is not None, "an upload was to end"
        request = self.out[found[1]]
        self.band.finish(self.clock.now, request.number)
        self._book_upload(request, 0.0)
        self._over(request, "done")
        self._changed()
        return Returned(request.number, request.task, request.version)

    def _stop(self, request: Request) -> None:
        if self.band is not None and request.number in self._snrs:
            self._book_upload(request, self.band.remove(self.clock.now, request.number))
            self._changed()

    def _book_upload(self, request: Request, left: float) -> None:
        """Energy of an upload that is over, with these bits left."""
        delays, snr = self.delays, self._snrs.pop(request.number)
        assert isinstance(delays, Wireless)
        assert request.begun is not None
        took = self.clock.now - request.begun - request.seconds
        bits = delays.bits(request.task) - left
        self.joules += delays.transmit_joules(request.client, snr, bits, took)

    def _changed(self) -> None:
        """Wait for the next upload that will be through, as things stand."""
        assert self.band is not None
        self._change += 1
        found = self.band.next_done()
        if found is not None:
            self.clock.at(max(found[0], self.clock.now), Uploaded(self._change))
