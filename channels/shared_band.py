"""Uploads that share a band in continuous time: each active upload slows the others down.

In asynchronous training clients do not upload together. An access defines the rates of the clients
that upload at the moment; they change whenever another upload starts or ends (processor sharing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.loads import Rates
from channels.validation import whole_number

# A remainder below this fraction of an upload is a rounding error.
_ROUNDING = 1e-12


class EndedUpload(NamedTuple):
    """What an upload has sent, and for how long.

    >>> import channels
    >>> band = channels.SharedBand(lambda clients: channels.EqualSlots().rates(clients + 1.0, 1e6))
    >>> band.start(0.0, key=0, bits=1e6)
    >>> band.remove(0.25, key=0)
    EndedUpload(bits_left=750000.0, transmit_seconds=0.25)

    Args:
        bits_left: bits that remained.
        transmit_seconds: seconds in which the client transmitted: the upload's duty cycle,
            integrated over time. Times its power, these are joules.
    """

    bits_left: float
    transmit_seconds: float


class SharedBand:
    """Active uploads and their remaining bits; each change costs O(uploads) operations.

    Between changes every upload proceeds at a constant rate. A change first advances all uploads to
    its time at the old rates, then computes new rates. A completed upload must be removed with
    :meth:`finish` at its completion time, before the clock advances further. Uploads that complete
    at the same instant are returned in the order in which they started.

    >>> import numpy as np
    >>> import channels
    >>> snr = np.array([3.0, 3.0])
    >>> band = channels.SharedBand(lambda clients: channels.EqualSlots().rates(snr[clients], 1e6))
    >>> band.start(0.0, key=0, bits=1e6)
    >>> band.start(0.25, key=1, bits=1e6)  # from now on, each client has half of the slots
    >>> band.next_done()
    (0.75, 0)

    Args:
        rates: function of the uploading clients, [uploads] in order of their starts. It returns
            the rate and the duty cycle of each upload while exactly these are active, finite and
            >= 0. Its result may change only when an upload starts or ends.

    Example, for the channels of a block with one cell::

        snr = draw.snr * draw.gain
        band = SharedBand(lambda clients: EqualBands().rates(snr[clients], bandwidth_hz=9e6))
    """

    def __init__(self, rates: Callable[[IntArray], Rates]) -> None:
        self._rates = rates
        self._now = -np.inf
        self._keys: list[int] = []
        self._clients = np.empty(0, dtype=np.int64)
        # Of each upload: total bits, remaining bits, and seconds of transmission until _now.
        self._uploads = np.empty((3, 0))
        self._bps = np.empty(0)  # since _now
        self._duty = np.empty(0)  # since _now
        self._pace = np.empty(0)  # seconds per bit, since _now
        self._done_at = np.empty(0)

    def start(self, now_seconds: float, key: int, bits: float, client: int | None = None) -> None:
        """Start an upload.

        Args:
            now_seconds: start time, finite, not before the last change.
            key: identifies the upload; must differ from the keys of all active uploads.
            bits: size of the upload, finite, >= 0.
            client: index of the uploading client; None if it equals ``key``.

        Raises:
            ValueError: the time is before the last change or after the end of an upload, the key
                is in use, ``bits`` is out of range, or ``rates`` returns invalid values.
            TypeError: ``key`` or ``client`` is not an integer.
        """
        key = whole_number("key", key)
        client = key if client is None else whole_number("client", client)
        if key in self._keys:
            raise ValueError(
                f"key is {key}, which is in use by an active upload: choose another key."
            )
        if not 0 <= bits < np.inf:
            raise ValueError(f"bits is {bits}: give a finite number >= 0.")
        uploads = np.append(self._uploads_at(now_seconds), [[bits], [bits], [0.0]], axis=1)
        self._set(now_seconds, [*self._keys, key], np.append(self._clients, client), uploads)

    def next_done(self) -> tuple[float, int] | None:
        """Time and key of the upload that ends first at the current rates, or None."""
        if not self._keys:
            return None
        first = int(self._done_at.argmin())
        seconds = float(self._done_at[first])
        return None if seconds == np.inf else (seconds, self._keys[first])

    def finish(self, now_seconds: float, key: int) -> EndedUpload:
        """Remove a completed upload at the time that :meth:`next_done` returned.

        Returns:
            The seconds of its transmission; no bits remain.

        Raises:
            ValueError: the upload is not active, is not complete at this time, or another upload
                completed earlier.
        """
        index = self._index_of(key)
        if self._done_at[index] > now_seconds:
            raise ValueError(
                f"now_seconds is {now_seconds}, but upload {key} completes at "
                f"{self._done_at[index]}: finish it then, or remove it."
            )
        return self._take(now_seconds, index)

    def remove(self, now_seconds: float, key: int) -> EndedUpload:
        """Cancel an upload.

        Returns:
            The bits that remained, and the seconds of its transmission.

        Raises:
            ValueError: the upload is not active, or the time is before the last change or after
                the end of an upload.
        """
        return self._take(now_seconds, self._index_of(key))

    def snapshot(self) -> dict[str, Any]:
        """The state as a dictionary for JSON; None stands for no change yet."""
        return {
            "seconds": self._now if np.isfinite(self._now) else None,
            "keys": list(self._keys),
            "clients": self._clients.tolist(),
            "uploads": self._uploads.tolist(),
            "bps": self._bps.tolist(),
            "duty": self._duty.tolist(),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore the state, including the rates, from the result of :meth:`snapshot`."""
        seconds = snapshot["seconds"]
        self._now = -np.inf if seconds is None else float(seconds)
        self._keys = [int(key) for key in snapshot["keys"]]
        self._clients = np.array(snapshot["clients"], dtype=np.int64)
        self._uploads = np.array(snapshot["uploads"], dtype=np.float64)
        self._bps = np.array(snapshot["bps"], dtype=np.float64)
        self._duty = np.array(snapshot["duty"], dtype=np.float64)
        self._set_ends()

    def _take(self, now: float, index: int) -> EndedUpload:
        """Remove the upload at ``index``."""
        uploads = self._uploads_at(now)
        _, left, sent_for = uploads[:, index].tolist()
        keys = self._keys[:index] + self._keys[index + 1 :]
        self._set(now, keys, np.delete(self._clients, index), np.delete(uploads, index, axis=1))
        return EndedUpload(left, sent_for)

    def _index_of(self, key: int) -> int:
        try:
            return self._keys.index(key)
        except ValueError:
            raise ValueError(
                f"key is {key}, which is not the key of an active upload: choose an active upload."
            ) from None

    def _uploads_at(self, now: float) -> FloatArray:
        """State of the uploads at ``now``, between the last change and the next end."""
        if not (np.isfinite(now) and now >= self._now):
            raise ValueError(
                f"now_seconds is {now} after {self._now}: give a finite time, not before the last "
                "change."
            )
        ended = self.next_done()
        if ended is not None and ended[0] < now:
            raise ValueError(
                f"now_seconds is {now}, but upload {ended[1]} completed at {ended[0]}: finish it "
                "at that time first."
            )
        bits, left, sent_for = self._uploads
        # Several uploads may end at the same instant, including those with almost no bits.
        complete = self._done_at <= now
        if self._keys and now > self._now:
            passed = now - self._now
            left, sent_for = left - passed / self._pace, sent_for + passed * self._duty
            # An upload that is due now is complete, even if a rounding error remains.
            complete |= left <= _ROUNDING * bits
        return np.stack([bits, np.where(complete, 0.0, left), sent_for])

    def _set(self, now: float, keys: Sequence[int], clients: IntArray, uploads: FloatArray) -> None:
        rates = self._rates(clients) if keys else Rates(uploads[0], uploads[0])
        for name, array in (("bps", rates.bps), ("duty", rates.duty)):
            if np.shape(array) != clients.shape or not (np.isfinite(array) & (array >= 0)).all():
                raise ValueError(
                    f"rates returned {name} {array} for clients {clients}: it must return a finite "
                    "number >= 0 for each."
                )
        self._now, self._keys, self._clients = float(now), list(keys), clients
        self._uploads, self._bps, self._duty = uploads, rates.bps, rates.duty
        self._set_ends()

    def _set_ends(self) -> None:
        """Compute when each upload ends at the current rates."""
        left = self._uploads[1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            self._pace = 1 / self._bps
            seconds = np.where(left > 0, left * self._pace, 0.0)
        self._done_at = self._now + seconds  # 0 bits take 0 s even at rate 0
