"""Uploads of requests: one by one over a shared band, or in groups that take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from channels import Access, ChannelDraw, EndedUpload, Load, Network, Rates, SharedBand
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.air.delays import Wireless
from wirelessfl.air.delivery import sending_seconds
from wirelessfl.air.uplinks import Uplink
from wirelessfl.air.uplinks.checked import check_arrived, checked_access, serving
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.ledger import Spending
from wirelessfl.engine.tasks.request import Request


class UploadBand:
    """Uploads in progress, at the rates of the uplink's access.

    Args:
        wireless: channels, rates and sizes of uploads.
    """

    def __init__(self, wireless: Wireless) -> None:
        self.wireless = wireless
        self._band = SharedBand(self._rates, time_shared=wireless.time_shared)
        self._senders: dict[int, tuple[int, int]] = {}  # client and place by number
        self._begun: dict[int, float] = {}  # seconds by number
        self._snrs = np.empty(0)  # by place
        self._free: list[int] = []  # places

    def __contains__(self, number: int) -> bool:
        """Whether upload ``number`` is in progress."""
        return number in self._senders

    def _rates(self, places: IntArray) -> Rates:
        return self.wireless.rates(self._snrs[places])

    def start(self, now: float, number: int, task: int, client: int, share: float) -> None:
        """Start an upload.

        Args:
            now: simulated time, in seconds.
            number: number of the request.
            task: task of the update.
            client: client that uploads.
            share: fraction of the full model's parameters that it sends.
        """
        place = self._place(self.wireless.received_snr(client, number))
        self._senders[number], self._begun[number] = (client, place), now
        self._band.start(now, number, self.wireless.bits(task, share), place)

    def _place(self, snr: float) -> int:
        """A free place, which gets ``snr``."""
        if not self._free:
            more = max(16, len(self._snrs))
            self._free = [*range(len(self._snrs), len(self._snrs) + more)]
            self._snrs = np.append(self._snrs, np.zeros(more))
        place = self._free.pop()
        self._snrs[place] = snr
        return place

    def next_done(self) -> tuple[float, int] | None:
        """Time and number of the upload that ends next at the current rates, or None."""
        return self._band.next_done()

    def finish(self, now: float, number: int) -> float:
        """Remove an upload at its end, and return its joules beyond idle power."""
        return self._joules(now, number, self._band.finish(now, number))

    def remove(self, now: float, number: int) -> float:
        """Stop an upload before its end, and return its joules so far beyond idle power."""
        return self._joules(now, number, self._band.remove(now, number))

    def _joules(self, now: float, number: int, ended: EndedUpload) -> float:
        client, place = self._senders.pop(number)
        self._free.append(place)
        begun, values = self._begun.pop(number), self.wireless.client(client)
        busy = ended.transmit_seconds
        joules = values.sending_watts * busy
        if not self.wireless.uplink.radio:  # a link is busy, but uses no transmit energy
            busy = now - begun
        return joules - values.idle_watts * busy

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists."""
        senders = [
            [number, client, self._snrs.item(place)]
            for number, (client, place) in self._senders.items()
        ]
        begun = [*self._begun.items()]
        return {"band": self._band.snapshot(), "senders": senders, "begun": begun}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        senders = state["senders"]
        self._snrs, self._free = np.array([snr for *_, snr in senders], dtype=np.float64), []
        self._senders = {number: (client, i) for i, (number, client, _) in enumerate(senders)}
        self._begun = dict(state["begun"])
        self._band.restore({**state["band"], "clients": [*range(len(senders))]})


class Uploaded(NamedTuple):
    """The next upload ends. The event is outdated unless ``change`` is the latest change."""

    change: int


class Uploads:
    """Uploads in progress. When one starts or ends, the end times of all others change.

    The clock holds an ``Uploaded`` for the upload that ends next.

    Args:
        clock: virtual clock.
        wireless: rates and energy of uploads.
    """

    def __init__(self, clock: Clock, wireless: Wireless) -> None:
        self.clock = clock
        self.band = UploadBand(wireless)
        self._change = 0

    def __contains__(self, request: Request) -> bool:
        """Whether the client of ``request`` is uploading its update."""
        return request.number in self.band

    def start(self, request: Request) -> None:
        """Start the upload of ``request``, whose client has finished training."""
        number, task, client = request.number, request.task, request.client
        self.band.start(self.clock.now, number, task, client, request.share)
        self.await_next()

    def ended(self, event: Uploaded) -> int | None:
        """Number of the request whose upload ends now; None if the event is outdated."""
        if event.change != self._change:
            return None
        upload = self.band.next_done()
        assert upload is not None, "an upload must be in progress"
        return upload[1]

    def finish(self, request: Request) -> float:
        """Remove a finished upload, and return its joules. Call ``await_next`` afterwards."""
        return self.band.finish(self.clock.now, request.number)

    def cancel(self, request: Request) -> float:
        """Stop an upload before its end, and return the joules used so far."""
        joules = self.band.remove(self.clock.now, request.number)
        self.await_next()
        return joules

    def await_next(self) -> None:
        """Put the end of the next upload on the clock, based on the current rates."""
        self._change += 1
        upload = self.band.next_done()
        if upload is not None:
            self.clock.at(max(upload[0], self.clock.now), Uploaded(self._change))

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists."""
        return {**self.band.snapshot(), "change": self._change}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._change = state["change"]
        self.band.restore(state)


@dataclass(frozen=True, eq=False)
class GroupUpload:
    """A simultaneous upload of several clients.

    Args:
        draw: channel draw of the clients, h [clients, antennas].
        seconds: duration of the upload.
        spent: transmit energy of the clients, beyond idle power.
    """

    draw: ChannelDraw
    seconds: float
    spent: Spending


@dataclass(frozen=True, eq=False)
class GroupUploads:
    """Channels, durations and energy of simultaneous uploads, as in rounds of one model.

    The index of a channel draw is the number of the merge.

    Args:
        network: channels and transmit powers.
        uplink: uplink with simultaneous senders.
        streams: [tasks], random stream of the channels of each task.
        pilot_symbols: pilot symbols of each sender, in turn before they send together.
    """

    network: Network
    uplink: Uplink
    streams: Sequence[Stream]
    pilot_symbols: int = 0

    @classmethod
    def of(
        cls, network: Network, uplink: Uplink, streams: Sequence[Stream], pilot_symbols: int = 0
    ) -> GroupUploads:
        """Create the uploads from the random ``streams`` of the tasks."""
        return cls(network, uplink, [stream.child("channel") for stream in streams], pilot_symbols)

    @cached_property
    def _access(self) -> Access:
        return checked_access(self.uplink)

    def upload(self, task: int, merge: int, clients: IntArray, load: Load) -> GroupUpload:
        """Compute one upload.

        Args:
            task: task whose updates are sent.
            merge: number of merges of its model before this one.
            clients: [clients], senders, sorted.
            load: what each of them sends.
        """
        draw = self.network.draw(self.streams[task], merge, clients)
        title = f"uplink {self.uplink.title!r}"
        load = replace(load, pilot_symbols=self.pilot_symbols)  # type: ignore[arg-type]
        with serving(title):
            service = self._access.serve(load, draw)
        check_arrived(service, clients, title)
        joules, devices = service.joules, draw.network.devices
        idle = None if devices is None else devices.by_client("idle_watts")
        if idle is not None:
            sending = sum(sending_seconds(service, load, draw.network))
            joules = joules - np.nan_to_num(idle.whole()) * sending
        spent = Spending(joules, float(joules.sum()))
        return GroupUpload(draw, float(service.seconds.max()), spent)


class TransmissionOver(NamedTuple):
    """The transmission ``number`` ends, unless it was cancelled."""

    number: int


@dataclass(frozen=True, eq=False)
class RequestGroup:
    """Clients that transmit together when the channel is free.

    Args:
        task: task whose updates they send.
        requests: requests of the updates, in the order of their clients.
    """

    task: int
    requests: Sequence[Request]

    @property
    def numbers(self) -> list[int]:
        """Numbers of the requests."""
        return [request.number for request in self.requests]

    @property
    def clients(self) -> IntArray:
        """Senders [clients], sorted."""
        return np.array([request.client for request in self.requests])


@dataclass(frozen=True, eq=False)
class _OnAir:
    """The transmission in progress.

    Args:
        what: senders and requests.
        number: number of the transmission in the run.
        begun: simulated time at which it started, in seconds.
        merge: number of merges of the task's model before this one.
        load: what its senders send.
        upload: its channels, duration and energy.
    """

    what: RequestGroup
    number: int
    begun: float
    merge: int
    load: Load
    upload: GroupUpload


class Transmissions:
    """Transmissions of several tasks on one channel, one after another, first come first served.

    Args:
        clock: virtual clock.
        uploads: channels, durations and energy.
    """

    def __init__(self, clock: Clock, uploads: GroupUploads) -> None:
        self.clock, self.uploads = clock, uploads
        self.queue: deque[RequestGroup] = deque()
        """Transmissions that wait for the channel."""
        self.draw: ChannelDraw | None = None
        """Channel draw of the transmission that ended last."""
        self._on_air: _OnAir | None = None
        self._begun = 0

    @property
    def due(self) -> RequestGroup | None:
        """The first waiting transmission, if the channel is free."""
        return self.queue[0] if self.queue and self._on_air is None else None

    def begin(self, merge: int, load: Load) -> None:
        """Start the first waiting transmission.

        Args:
            merge: number of merges of its task's model so far.
            load: what its senders send.
        """
        number, self._begun = self._begun, self._begun + 1
        self._begin(self.queue.popleft(), number, self.clock.now, merge, load)
        assert self._on_air is not None
        self.clock.after(self._on_air.upload.seconds, TransmissionOver(number))

    def _begin(self, what: RequestGroup, number: int, begun: float, merge: int, load: Load) -> None:
        upload = self.uploads.upload(what.task, merge, what.clients, load)
        self._on_air = _OnAir(what, number, begun, merge, load, upload)

    def ended(self, event: TransmissionOver) -> tuple[RequestGroup, Spending] | None:
        """End the transmission, and return it with its energy; None if it was cancelled."""
        ended = self._on_air
        if ended is None or ended.number != event.number:
            return None
        self._on_air, self.draw = None, ended.upload.draw
        return ended.what, ended.upload.spent

    def cancel(self, task: int) -> tuple[RequestGroup, Spending] | None:
        """Drop the transmissions of ``task``; return one that has begun, with its energy so far."""
        self.queue = deque(waits for waits in self.queue if waits.task != task)
        stopped = self._on_air
        if stopped is None or stopped.what.task != task:
            return None
        self._on_air = None
        seconds, upload = self.clock.now - stopped.begun, stopped.upload
        if seconds == 0:  # the upload may take no time either
            return None
        return stopped.what, upload.spent.part(seconds, upload.seconds)

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists."""
        on_air = self._on_air
        load = Load() if on_air is None else on_air.load
        return {
            "queue": [[waits.task, waits.numbers] for waits in self.queue],
            "begun": self._begun,
            "on_air": on_air
            and [
                [on_air.what.task, on_air.what.numbers],
                [on_air.number, on_air.begun, on_air.merge],
                [values.tolist() for values in (load.elements, load.vectors, load.jointly)],
                None if load.weights is None else load.weights.tolist(),
            ],
        }

    def restore(self, state: dict[str, Any], out: Mapping[int, Request]) -> None:
        """Continue from a snapshot, with the active requests by number."""

        def found(task: int, numbers: Sequence[int]) -> RequestGroup:
            return RequestGroup(task, [out[number] for number in numbers])

        self.queue = deque(found(*waits) for waits in state["queue"])
        self._begun, self._on_air = state["begun"], None
        if state["on_air"] is not None:
            what, (number, begun, merge), (elements, vectors, jointly), weights = state["on_air"]
            load = Load(elements=elements, vectors=vectors, jointly=jointly, weights=weights)
            self._begin(found(*what), number, begun, merge, load)
