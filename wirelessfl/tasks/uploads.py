"""Uploads of training requests over a shared band, and their energy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from channels import SharedBand
from channels.arrays import FloatArray, IntArray
from wirelessfl.schedules import Clock
from wirelessfl.tasks.delays import Wireless
from wirelessfl.tasks.request import Request


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
        self.clock, self.wireless = clock, wireless
        self.band = SharedBand(self._seconds_per_bit)
        self._snrs: dict[int, float] = {}
        self._change = 0

    def __contains__(self, request: Request) -> bool:
        """Whether the client of ``request`` is uploading its update."""
        return request.number in self._snrs

    def _seconds_per_bit(self, numbers: IntArray) -> FloatArray:
        """Seconds per bit [uploads] while exactly these requests upload."""
        snrs = np.array([self._snrs[number] for number in numbers.tolist()])
        return self.wireless.seconds_per_bit(snrs)

    def start(self, request: Request) -> None:
        """Start the upload of ``request``, whose client has finished training."""
        wireless, number = self.wireless, request.number
        self._snrs[number] = wireless.received_snr(request.client, number)
        self.band.start(self.clock.now, number, wireless.bits(request.task, request.share))
        self.await_next()

    def ended(self, event: Uploaded) -> int | None:
        """Number of the request whose upload ends now; None if the event is outdated."""
        if event.change != self._change:
            return None
        found = self.band.next_done()
        assert found is not None, "an upload must be in progress"
        return found[1]

    def finish(self, request: Request) -> float:
        """Remove a finished upload, and return its joules. Call ``await_next`` afterwards."""
        self.band.finish(self.clock.now, request.number)
        return self._joules(request, 0.0)

    def cancel(self, request: Request) -> float:
        """Stop an upload before its end, and return the joules used so far."""
        joules = self._joules(request, self.band.remove(self.clock.now, request.number))
        self.await_next()
        return joules

    def _joules(self, request: Request, left: float) -> float:
        """Energy of an upload that stops with ``left`` bits unsent."""
        wireless, snr = self.wireless, self._snrs.pop(request.number)
        assert request.begun is not None
        took = self.clock.now - request.begun - request.seconds
        bits = wireless.bits(request.task, request.share) - left
        return wireless.transmit_joules(request.client, snr, bits, took)

    def await_next(self) -> None:
        """Put the end of the next upload on the clock, based on the current rates."""
        self._change += 1
        found = self.band.next_done()
        if found is not None:
            self.clock.at(max(found[0], self.clock.now), Uploaded(self._change))

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists."""
        return {
            "band": self.band.snapshot(),
            "snrs": [[number, snr] for number, snr in self._snrs.items()],
            "change": self._change,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._snrs, self._change = dict(state["snrs"]), state["change"]
        self.band.restore(state["band"])
