"""Training requests in progress: a first-come, first-served queue at each client."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

from channels.indexed import uniform
from channels.streams import Stream
from wirelessfl.air.delays import Delays
from wirelessfl.air.participants import PresentClients
from wirelessfl.air.traffic import Traffic
from wirelessfl.engine.events import Event, Exhausted, Lost, Ready, Returned, Transmitted
from wirelessfl.engine.loop import restored_event, stored_event
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.ledger import TaskLedger
from wirelessfl.engine.sessions.attendance import Churn, PresenceChanged
from wirelessfl.engine.tasks.clients import BusyClients, DropOuts, at_place
from wirelessfl.engine.tasks.handler import Records, Span
from wirelessfl.engine.tasks.request import Request
from wirelessfl.engine.tasks.uploads import (
    RequestGroup,
    TransmissionOver,
    Transmissions,
    Uploaded,
    Uploads,
)


class ClientDone(NamedTuple):
    """A client has finished its local steps, or has dropped out."""

    request: Request


class Departed(NamedTuple):
    """A client that has left drops a request."""

    client: int


class CutOff(NamedTuple):
    """The server gives up on a request whose update has not arrived."""

    number: int


class Requests:
    """Requests at clients and their times, without training.

    A client works on one request at a time, in order of arrival. All random values are drawn by the
    number of the request, so they do not depend on the order of events.

    With simultaneous transmissions a client holds its update, and its queue waits, until the
    transmission of the update has ended. Then requests go to idle clients first. If the maximum
    number of clients is busy, they go to busy clients without a request of the same task. So
    min(requests, clients, busy clients) clients are always busy, and no request queues at a client
    that holds an update of the same task and waits for other clients.

    Args:
        clock: virtual clock.
        delays: latency model.
        clients: N, number of clients.
        stream: random stream of client choices and drop-outs.
        tasks: number of tasks.
        busy_clients: maximum number of busy clients; at the maximum, requests go to one of them
            (the published simulator's availability). None for no limit.
        drop_out: probability that a client drops out of a request, at a uniform time of its
            training. The update is lost, and the client continues with its queue.
        cutoff: seconds after which the server gives up on a request; its client stops, and
            continues with its queue. An update that arrives exactly then is in time. None for no
            cut-off.
        choose: maps the number of a request to its client; None for a uniform choice among all
            clients. The distribution is the same if only a random fraction of the clients,
            independent of the past, accepts requests.
        transmissions: simultaneous transmissions; None if each client uploads when it is ready.
        availability: when clients are available; requests go to those that are. A client that
            leaves drops its requests; an update that arrives exactly then is in time. Without
            simultaneous transmissions. None for always.
        traffic: [tasks], bits of uploads, for the ledger; None if it does not count them.
        records: optional lists that receive finished spans.
    """

    def __init__(
        self,
        clock: Clock,
        delays: Delays,
        clients: int,
        stream: Stream,
        *,
        tasks: int = 1,
        busy_clients: int | None = None,
        drop_out: float = 0.0,
        cutoff: float | None = None,
        choose: Callable[[int], int] | None = None,
        transmissions: Transmissions | None = None,
        availability: Churn | None = None,
        traffic: Sequence[Traffic] | None = None,
        records: Records | None = None,
    ) -> None:
        self.clock, self.delays, self.clients = clock, delays, clients
        self.records, self.transmissions, self.cutoff = records, transmissions, cutoff
        self._traffic, self.availability = traffic, availability
        self.present: PresentClients | None = None
        """Clients that are available; None for all."""
        if availability is not None:
            self.present = PresentClients(availability.present)
        self.busy: BusyClients | None = None
        if busy_clients is not None or transmissions is not None:
            at_once = transmissions is not None
            self.busy = BusyClients(clients, busy_clients, idle_first=at_once)
        self.issued = 0
        self.ledger = TaskLedger.none(tasks, clients)
        self._spent = self.ledger.spent
        self.queues: dict[int, deque[Request]] = {}
        self.out: dict[int, Request] = {}
        self._places = uniform(stream.child("clients"))
        self.drop_outs = DropOuts(drop_out, stream.child("drop-outs"))
        self.choose = choose
        wireless = delays.wireless
        one_by_one = wireless if transmissions is None else None
        self.uploads = None if one_by_one is None else Uploads(clock, one_by_one)

    def ask(
        self, task: int, version: int, share: Callable[[int], float] = lambda client: 1.0
    ) -> Request:
        """Send a request to a random client now.

        Args:
            task: task of the model.
            version: version of the model.
            share: maps a client to the fraction of the model's parameters that it would train.
        """
        number = self.issued
        self.issued = number + 1
        client = self._client(number, task)
        part = share(client)
        seconds = part * self.delays.seconds(task, client, number)
        seconds += self.delays.more_seconds(task, client, part)
        lost_after = self.drop_outs.lost_after(number, seconds)
        request = Request(number, task, client, version, self.clock.now, seconds, part, lost_after)
        self.out[number] = request
        if self.cutoff is not None:
            self.clock.at(math.nextafter(self.clock.now + self.cutoff, math.inf), CutOff(number))
        if self.busy is not None:
            self.busy.add(request)
        queue = self.queues.get(client)
        if queue is None:
            self.queues[client] = deque((request,))
            self._begin(request)
        else:
            queue.append(request)
        return request

    def _client(self, number: int, task: int) -> int:
        if self.choose is not None:
            return self.choose(number)
        place = self._places[number]
        if self.busy is None:
            return at_place(place, self.clients, self.present)
        return self.busy.choose(place, task, self.present)

    def _begin(self, request: Request) -> None:
        request.begun = self.clock.now
        lost = request.lost_after
        self.clock.after(request.seconds if lost is None else lost, ClientDone(request))

    def happened(self, what: Any) -> Event | None:
        """Process an entry of the clock; return the event for the schedule, or None."""
        if type(what) is ClientDone:
            request = what.request
            if request.dropped:
                return None
            if request.lost_after is not None:
                self._over(request, "lost")
                return Lost(request.task)
            if self.transmissions is not None:
                return Ready(request.number, request.task)
            if self.uploads is not None:
                self.uploads.start(request)
                return None
            self._over(request, "done")
            return Returned(request.number, request.task, request.version)
        if type(what) is Uploaded:
            return self._uploaded(what)
        if type(what) is TransmissionOver:
            return self._transmitted(what)
        if type(what) is CutOff:
            return self._cut_off(what.number)
        if type(what) is PresenceChanged:
            self._look()
            return None
        if type(what) is Departed:
            return self._departed(what.client)
        event: Event = what
        return event

    def _uploaded(self, what: Uploaded) -> Event | None:
        uploads = self.uploads
        assert uploads is not None
        number = uploads.ended(what)
        if number is None:
            return None
        request = self.out[number]
        self._spent.add(request.client, uploads.finish(request))
        self._over(request, "done")
        uploads.await_next()
        return Returned(request.number, request.task, request.version)

    def transmit(self, task: int, numbers: Sequence[int]) -> None:
        """Let the clients of these ready requests transmit together when the channel is free."""
        transmissions = self.transmissions
        assert transmissions is not None
        requests = sorted((self.out[n] for n in numbers), key=lambda request: request.client)
        transmissions.queue.append(RequestGroup(task, requests))

    def _transmitted(self, what: TransmissionOver) -> Event | None:
        transmissions = self.transmissions
        assert transmissions is not None
        ended = transmissions.ended(what)
        if ended is None:
            return None
        transmission, spent = ended
        self._spent.include(transmission.clients, spent)
        for request in transmission.requests:
            self._over(request, "done")
        versions = [request.version for request in transmission.requests]
        return Transmitted(transmission.task, transmission.numbers, versions)

    def _cut_off(self, number: int) -> Event | None:
        """Give up on a request, unless its update has arrived or its client has dropped out."""
        request = self.out.get(number)
        if request is None:
            return None
        self._drop(request)
        return Lost(request.task, number)

    def _drop(self, request: Request) -> None:
        request.dropped = True
        queue = self.queues[request.client]
        if queue[0] is request:
            self._stop(request)
        else:
            queue.remove(request)
            self._forget(request)

    def _look(self) -> None:
        """Update the available clients; those that have left drop their requests."""
        availability, present = self.availability, self.present
        assert availability is not None
        assert present is not None
        for change in availability.new_changes():
            if change.joins:
                present.add(change.client)
            else:
                present.remove(change.client)
                # Updates that arrive now are in time.
                self.clock.at(math.nextafter(self.clock.now, math.inf), Departed(change.client))

    def _departed(self, client: int) -> Event | None:
        """Drop the last request of a client that has left, and then the others."""
        queue = self.queues.get(client)
        if queue is None:
            return None
        request = queue[-1]
        if len(queue) > 1:
            self.clock.after(0.0, Departed(client))
        self._drop(request)
        return Lost(request.task, left=request.number)

    def _stop(self, request: Request) -> None:
        """Let the client of a dropped request stop its training or upload."""
        if self.uploads is not None and request in self.uploads:
            self._spent.add(request.client, self.uploads.cancel(request))
        self._over(request, "cancelled")

    def _forget(self, request: Request) -> None:
        """Remove a dropped request that waited in its client's queue."""
        if self.out.pop(request.number, None) is not None and self.busy is not None:
            self.busy.remove(request, idle=False)

    def _over(self, request: Request, how: str) -> None:
        """Finish a request; its client starts the next one in its queue."""
        del self.out[request.number]
        if request.begun is not None:
            seconds = self.clock.now - request.begun
            task, client, share = request.task, request.client, request.share
            self._spent.add(client, self.delays.compute_joules(task, client, seconds, share))
        if how == "done" and self._traffic is not None:
            self.ledger.up[request.task] += self._traffic[request.task].up_of(request.share)
        if self.records is not None and request.begun is not None:
            span = Span(request.task, request.client, request.begun, self.clock.now, how)
            self.records.spans.append(span)
        queue = self.queues[request.client]
        queue.popleft()
        if queue:
            self._begin(queue[0])
        else:
            del self.queues[request.client]
        if self.busy is not None:
            self.busy.remove(request, idle=not queue)

    def cancel(self, task: int) -> None:
        """Cancel all requests of ``task``; its clients continue with the next in their queues."""
        stopped = None if self.transmissions is None else self.transmissions.cancel(task)
        if stopped is not None:
            transmission, spent = stopped
            self._spent.include(transmission.clients, spent)
        dropped = [request for request in self.out.values() if request.task == task]
        for request in dropped:
            request.dropped = True
        for client in dict.fromkeys(request.client for request in dropped):
            queue = self.queues[client]
            first = queue[0]
            kept = deque(request for request in queue if not request.dropped)
            if first.dropped:
                kept.appendleft(first)
            self.queues[client] = kept
            if first.dropped:
                self._stop(first)
        for request in dropped:  # requests that waited in queues
            self._forget(request)

    def snapshot(self) -> dict[str, Any]:
        """All requests and entries of the clock, without the ledger: numbers, lists and strings."""
        future: list[list[Any]] = []
        for seconds, what in self.clock.queued():
            match what:
                case ClientDone(request):
                    if not request.dropped:
                        future.append([seconds, "trained", request.number])
                case CutOff(number):
                    if number in self.out:
                        future.append([seconds, "cut-off", number])
                case Departed(client):
                    future.append([seconds, "departed", client])
                case PresenceChanged() | Exhausted():
                    pass  # they follow from the rest
                case Uploaded(change):
                    future.append([seconds, "uploaded", change])
                case TransmissionOver(number):
                    future.append([seconds, "transmission", number])
                case _:
                    future.append([seconds, *stored_event(what)])
        return {
            "now": self.clock.now,
            "future": future,
            "issued": self.issued,
            "out": [list(astuple(request)) for request in self.out.values()],
            "queues": [[c, [r.number for r in queue]] for c, queue in self.queues.items()],
            "busy": [] if self.busy is None else self.busy.all,
            **({"band": None} if self.uploads is None else self.uploads.snapshot()),
            "air": None if self.transmissions is None else self.transmissions.snapshot(),
            **({} if self.availability is None else {"available": self.availability.snapshot()}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot; the caller restores the ledger."""
        self.issued = state["issued"]
        self.out = {request[0]: Request(*request) for request in state["out"]}
        self.queues = {c: deque(self.out[n] for n in numbers) for c, numbers in state["queues"]}
        if self.busy is not None:
            self.busy.restore(state["busy"], self.out.values())
        if self.uploads is not None:
            self.uploads.restore(state)
        if self.transmissions is not None:
            self.transmissions.restore(state["air"], self.out)
        event_of: dict[str, Callable[[int], Any]] = {
            "trained": lambda number: ClientDone(self.out[number]),
            "uploaded": Uploaded,
            "cut-off": CutOff,
            "departed": Departed,
            "transmission": TransmissionOver,
        }
        future = [
            (at, event_of[kind](*of) if kind in event_of else restored_event(kind, *of))
            for at, kind, *of in state["future"]
        ]
        self.clock.requeue(state["now"], future)
        if self.availability is not None:
            self.availability.restore(state["available"])
            self.present = PresentClients(self.availability.present)
            self.availability.start()
