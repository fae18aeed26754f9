"""Simultaneous transmissions of groups of clients, which take turns on one channel."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from channels import Access, ChannelDraw, Load, Network
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.air.uplinks import Uplink
from wirelessfl.air.uplinks.checked import check_arrived, checked_access, serving
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.ledger import Spending
from wirelessfl.engine.tasks.request import Request


@dataclass(frozen=True, eq=False)
class GroupUpload:
    """A simultaneous upload of several clients.

    Args:
        draw: channel draw of the clients, h [clients, antennas].
        seconds: duration of the upload.
        spent: transmit energy of the clients.
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
    """

    network: Network
    uplink: Uplink
    streams: Sequence[Stream]

    @classmethod
    def of(cls, network: Network, uplink: Uplink, streams: Sequence[Stream]) -> GroupUploads:
        """Create the uploads from the random ``streams`` of the tasks."""
        return cls(network, uplink, [stream.child("channel") for stream in streams])

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
        with serving(title):
            service = self._access.serve(load, draw)
        check_arrived(service, clients, title)
        spent = Spending(service.joules, float(service.joules.sum()))
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
