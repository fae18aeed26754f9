"""Uploads of training requests on the virtual clock."""

from __future__ import annotations

from typing import Any, NamedTuple

from wirelessfl.schedules import Clock
from wirelessfl.tasks.delays import Wireless
from wirelessfl.tasks.request import Request
from wirelessfl.tasks.upload_band import UploadBand


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
        found = self.band.next_done()
        assert found is not None, "an upload must be in progress"
        return found[1]

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
        found = self.band.next_done()
        if found is not None:
            self.clock.at(max(found[0], self.clock.now), Uploaded(self._change))

    def snapshot(self) -> dict[str, Any]:
        """State as plain numbers and lists."""
        return {**self.band.snapshot(), "change": self._change}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._change = state["change"]
        self.band.restore(state)
