"""Uploads that share a band in continuous time: each active upload slows the others down.

In asynchronous training clients do not upload together. An access defines the rates of the clients
that upload at the moment; they change whenever another upload starts or ends (processor sharing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.loads import Rates
from channels.validation import whole_number

# A remainder below this fraction of an upload is a rounding error.
_ROUNDING = 1e-12
# Above this rate, in bit/s, seconds of an upload do not overflow.
_SLOW = 1e-60


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
    """Active uploads and their remaining bits; each change takes a few operations on arrays.

    Between changes every upload proceeds at a constant rate. A change first advances all uploads to
    its time at the old rates, then computes new rates. A completed upload must be removed with
    :meth:`finish` at its completion time, before the clock advances further. Uploads that complete
    at the same instant are returned in the order in which they started. If ``rates`` raises or
    returns invalid values, no upload starts or ends, and the band can still be used.

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
        time_shared: whether each of n uploads has 1/n of the rate that it has alone, and the duty
            cycle 1/n, see :attr:`Access.time_shared`. ``rates`` is then called once per upload,
            for it alone.

    Example, for the channels of a block with one cell::

        snr = draw.snr * draw.gain
        band = SharedBand(lambda clients: EqualBands().rates(snr[clients], bandwidth_hz=9e6))
    """

    def __init__(self, rates: Callable[[IntArray], Rates], *, time_shared: bool = False) -> None:
        self._rates, self._time_shared = rates, time_shared
        self._now = -np.inf
        self._keys: list[int] = []
        self._active: set[int] = set()  # the keys
        # Of each upload, in columns of which the last are free: its client; total bits, remaining
        # bits and seconds of transmission until _now, and rate alone, if the band is time-shared.
        self._clients = np.empty(16, dtype=np.int64)
        self._uploads = np.empty((4, 16))
        self._bps = np.empty(0)  # since _now
        self._duty: FloatArray | float = 0.0  # since _now; one number if it is equal for all
        self._pace = np.empty(0)  # seconds per bit, since _now
        self._done_at = np.empty(0)
        self._next: tuple[float, int] | None = None  # end and index of the upload that ends first

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
        if key in self._active:
            raise ValueError(
                f"key is {key}, which is in use by an active upload: choose another key."
            )
        if not 0 <= bits < np.inf:
            raise ValueError(f"bits is {bits}: give a finite number >= 0.")
        alone = self._alone(client) if self._time_shared else 0.0
        self._advance(now_seconds)
        count = len(self._keys)
        if count == len(self._clients):
            self._clients = np.append(self._clients, self._clients)
            self._uploads = np.append(self._uploads, self._uploads, axis=1)
        self._clients[count], self._uploads[:, count] = client, (bits, bits, 0.0, alone)
        rates = self._rates_of_first(count + 1)  # may raise: the upload does not start then
        self._keys.append(key)
        self._active.add(key)
        self._share(rates)

    def next_done(self) -> tuple[float, int] | None:
        """Time and key of the upload that ends first at the current rates, or None."""
        return None if self._next is None else (self._next[0], self._keys[self._next[1]])

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
        count = len(self._keys)
        return {
            "seconds": self._now if np.isfinite(self._now) else None,
            "keys": list(self._keys),
            "clients": self._clients[:count].tolist(),
            "uploads": self._uploads[:3, :count].tolist(),
            "bps": self._bps.tolist(),
            "duty": np.broadcast_to(self._duty, count).tolist(),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore the state, including the rates, from the result of :meth:`snapshot`."""
        seconds = snapshot["seconds"]
        self._now = -np.inf if seconds is None else float(seconds)
        self._keys = [int(key) for key in snapshot["keys"]]
        self._active = set(self._keys)
        count = len(self._keys)
        self._clients = np.empty(max(16, count), dtype=np.int64)
        self._uploads = np.zeros((4, len(self._clients)))
        self._clients[:count], self._uploads[:3, :count] = snapshot["clients"], snapshot["uploads"]
        if self._time_shared:
            self._uploads[3, :count] = [*map(self._alone, self._clients[:count].tolist())]
        self._bps = np.array(snapshot["bps"], dtype=np.float64)
        self._duty = np.array(snapshot["duty"], dtype=np.float64)
        self._set_ends()

    def _take(self, now: float, index: int) -> EndedUpload:
        """Remove the upload at ``index``."""
        self._advance(now)
        count, clients, uploads = len(self._keys), self._clients, self._uploads
        _, left, sent_for, _ = uploads[:, index].tolist()
        client = clients[index]
        clients[index : count - 1] = clients[index + 1 : count]
        try:
            rates = self._rates_of_first(count - 1)
        except BaseException:  # the upload remains
            clients[index + 1 : count] = clients[index : count - 1]
            clients[index] = client
            raise
        self._active.remove(self._keys.pop(index))
        uploads[:, index : count - 1] = uploads[:, index + 1 : count]
        self._share(rates)
        return EndedUpload(left, sent_for)

    def _index_of(self, key: int) -> int:
        if self._next is not None and self._keys[self._next[1]] == key:
            return self._next[1]
        try:
            return self._keys.index(key)
        except ValueError:
            raise ValueError(
                f"key is {key}, which is not the key of an active upload: choose an active upload."
            ) from None

    def _advance(self, now: float) -> None:
        """Advance all uploads to ``now``, between the last change and the next end."""
        if not (-np.inf < now < np.inf and now >= self._now):
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
        passed, self._now = now - self._now, float(now)
        count = len(self._keys)
        if not count:
            return
        left, sent_for = self._uploads[1, :count], self._uploads[2, :count]
        # Several uploads may end at the same instant, including those with almost no bits.
        complete = self._done_at <= now
        if passed > 0:
            left -= passed / self._pace
            sent_for += passed * self._duty
            # An upload that is due now is complete, even if a rounding error remains.
            complete |= left <= _ROUNDING * self._uploads[0, :count]
        left[complete] = 0.0

    def _rates_of_first(self, count: int) -> Rates | None:
        """Rates while the first ``count`` clients upload; None if none does, or time-shared."""
        return self._checked(self._clients[:count]) if count and not self._time_shared else None

    def _share(self, rates: Rates | None) -> None:
        """Set rates and ends of the uploads from now on."""
        count = len(self._keys)
        if rates is not None:
            self._bps, self._duty = rates.bps, rates.duty
        elif self._time_shared:
            self._bps, self._duty = self._uploads[3, :count] / max(1, count), 1 / max(1, count)
        else:
            self._bps = self._duty = np.empty(0)
        self._set_ends()

    def _alone(self, client: int) -> float:
        """The rate of ``client`` while no other client uploads."""
        return float(self._checked(np.array([client])).bps[0])

    def _checked(self, clients: IntArray) -> Rates:
        rates = self._rates(clients)
        for name, array in (("bps", rates.bps), ("duty", rates.duty)):
            if np.shape(array) != clients.shape or not (
                array[array.argmin()] >= 0 and array[array.argmax()] < np.inf
            ):
                raise ValueError(
                    f"rates returned {name} {array} for clients {clients}: it must return a finite "
                    "number >= 0 for each."
                )
        return rates

    def _set_ends(self) -> None:
        """Compute when each upload ends at the current rates."""
        self._next, count = None, len(self._keys)
        if not count:
            return
        left, bps = self._uploads[1, :count], self._bps
        if bps[bps.argmin()] > _SLOW:
            self._pace = 1 / bps
            seconds = left * self._pace
        else:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                self._pace = 1 / bps
                seconds = np.where(left > 0, left * self._pace, 0.0)  # 0 bits take 0 s at rate 0
        self._done_at = self._now + seconds
        first = int(self._done_at.argmin())
        end = float(self._done_at[first])
        if end < np.inf:
            self._next = end, first
