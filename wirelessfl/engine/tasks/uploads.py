"""Uploads of training requests over the band that they share, on the virtual clock."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from channels import EndedUpload, Rates, SharedBand
from channels.arrays import IntArray
from wirelessfl.air.delays import Wireless
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.tasks.request import Request


class UploadBand:
    """Uploads in progress, at the rates of the uplink's access.

    Args:
        wireless: channels, rates and sizes of uploads.
    """

    def __init__(self, wireless: Wireless) -> None:
        self.wireless = wireless
        self._band = SharedBand(self._rates)
        self._senders: dict[int, tuple[int, float]] = {}  # client and SNR by number

    def __contains__(self, number: int) -> bool:
        """Whether upload ``number`` is in progress."""
        return number in self._senders

    def _rates(self, numbers: IntArray) -> Rates:
        return self.wireless.rates(np.array([self._senders[n][1] for n in numbers.tolist()]))

    def start(self, now: float, number: int, task: int, client: int, share: float) -> None:
        """Start an upload.

        Args:
            now: simulated time, in seconds.
            number: number of the request.
            task: task of the update.
            client: client that uploads.
            share: fraction of the full model's parameters that it sends.
        """
        self._senders[number] = client, self.wireless.received_snr(client, number)
        self._band.start(now, number, self.wireless.bits(task, share))

    def next_done(self) -> tuple[float, int] | None:
        """Time and number of the upload that ends next at the current rates, or None."""
        return self._band.next_done()

    def finish(self, now: float, number: int) -> float:
        """Remove an upload at its end, and return its joules."""
        return self._joules(number, self._band.finish(now, number))

    def remove(self, now: float, number: int) -> float:
        """Stop an upload before its end, and return the joules used so far."""
        return self._joules(number, self._band.remove(now, number))

    def _joules(self, number: int, ended: EndedUpload) -> float:
        client, _ = self._senders.pop(number)
        return float(self.wireless.network.transmit_power_w[client] * ended.transmit_seconds)

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists."""
        senders = [[number, *sender] for number, sender in self._senders.items()]
        return {"band": self._band.snapshot(), "senders": senders}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._senders = {number: (client, snr) for number, client, snr in state["senders"]}
        self._band.restore(state["band"])


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
