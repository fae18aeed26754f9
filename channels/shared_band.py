"""Uploads that share a band in continuous time: they start when they like, and slow each other.

Clients of asynchronous training do not upload together. Whoever uploads has a share of the band, as
in :mod:`channels.links`, which changes whenever another upload starts or ends: processor sharing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray
from channels.validation import whole_number

# A part of an upload below this is what rounding left of it.
_ROUNDING = 1e-12


class SharedBand:
    """Uploads under way, each with the bits that are left of it; O(uploads) work a change.

    Between changes every upload goes on at its own constant rate. A change at some time moves all
    uploads there at the rates that held, and asks for new ones. What is done must be taken out by
    :meth:`finish`, at its time, before time goes on; uploads that are done at the same instant come
    in the order in which they started.

    Args:
        seconds_per_bit: from the clients who upload, [uploads] in order of their starts, to the
            seconds that a bit of each takes while just these upload; > 0, inf for no progress. It
            must depend on its argument alone, or change only together with the uploads.

    For the channels of a block, and clients with one upload each at a time::

        def seconds_per_bit(clients):
            active = np.isin(np.arange(draw.network.clients), clients)
            return ofdma_seconds_per_bit(draw, active)[clients]
    """

    def __init__(self, seconds_per_bit: Callable[[IntArray], ArrayLike]) -> None:
        self._seconds_per_bit = seconds_per_bit
        self._now = -np.inf
        self._keys: list[int] = []
        self._clients = np.empty(0, dtype=np.int64)
        self._bits = np.empty(0)  # as given
        self._left = np.empty(0)  # of these, at time _now
        self._pace = np.empty(0)  # seconds a bit, since _now
        self._done_at = np.empty(0)

    def start(self, now_seconds: float, key: int, bits: float, client: int | None = None) -> None:
        """An upload joins.

        Args:
            now_seconds: the time, finite, not before the last change.
            key: names the upload; no other under way has it.
            bits: what it sends, finite, >= 0.
            client: who sends it, if that is not ``key`` itself.

        Raises:
            ValueError: time runs backwards or passes the end of an upload, the key is taken, bits
                are out of range, or ``seconds_per_bit`` returns what it must not.
            TypeError: key or client is no integer.
        """
        key = whole_number("key", key)
        client = key if client is None else whole_number("client", client)
        if key in self._keys:
            raise ValueError(
                f"key is {key}, which is uploading already: give every upload its own."
            )
        if not 0 <= bits < np.inf:
            raise ValueError(f"bits is {bits}: give a finite number >= 0.")
        left = self._left_at(now_seconds)
        clients = np.append(self._clients, client)
        self._set(
            now_seconds,
            [*self._keys, key],
            clients,
            np.append(self._bits, bits),
            np.append(left, bits),
        )

    def next_done(self) -> tuple[float, int] | None:
        """Seconds and key of the upload that ends first if nothing else changes, or None."""
        if not self._keys:
            return None
        first = int(self._done_at.argmin())
        seconds = float(self._done_at[first])
        return None if seconds == np.inf else (seconds, self._keys[first])

    def finish(self, now_seconds: float, key: int) -> None:
        """An upload that is done leaves, at the time that :meth:`next_done` gave.

        Raises:
            ValueError: it is not under way, not done at this time, or another was done before.
        """
        place = self._place(key)
        if self._done_at[place] > now_seconds:
            raise ValueError(
                f"now_seconds is {now_seconds}, and upload {key} is done at "
                f"{self._done_at[place]}: finish it then, or remove it."
            )
        self._take(now_seconds, place)

    def remove(self, now_seconds: float, key: int) -> float:
        """An upload is given up.

        Returns:
            Bits that were left of it.

        Raises:
            ValueError: it is not under way, time runs backwards, or passes the end of an upload.
        """
        return self._take(now_seconds, self._place(key))

    def snapshot(self) -> dict[str, Any]:
        """The state in numbers and lists, as JSON can hold it; None stands for infinity."""
        return {
            "seconds": _finite(self._now),
            "keys": list(self._keys),
            "clients": self._clients.tolist(),
            "bits": self._bits.tolist(),
            "bits_left": self._left.tolist(),
            "seconds_per_bit": [_finite(pace) for pace in self._pace.tolist()],
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from :meth:`snapshot`, whatever was here before, with the rates that held then."""
        seconds = snapshot["seconds"]
        self._now = -np.inf if seconds is None else float(seconds)
        self._keys = [int(key) for key in snapshot["keys"]]
        self._clients = np.array(snapshot["clients"], dtype=np.int64)
        self._bits = np.array(snapshot["bits"], dtype=np.float64)
        self._left = np.array(snapshot["bits_left"], dtype=np.float64)
        paces = [np.inf if pace is None else pace for pace in snapshot["seconds_per_bit"]]
        self._pace = np.array(paces, dtype=np.float64)
        self._done_at = _done_at(self._now, self._left, self._pace)

    def _take(self, now: float, place: int) -> float:
        """Without the upload at ``place``; returns the bits that were left of it."""
        left = self._left_at(now)
        keys = self._keys[:place] + self._keys[place + 1 :]
        clients, bits = np.delete(self._clients, place), np.delete(self._bits, place)
        self._set(now, keys, clients, bits, np.delete(left, place))
        return float(left[place])

    def _place(self, key: int) -> int:
        try:
            return self._keys.index(key)
        except ValueError:
            raise ValueError(
                f"key is {key}, which is not uploading: start it first, and end it once."
            ) from None

    def _left_at(self, now: float) -> FloatArray:
        """Bits left of each upload at a time from the last change to the next end."""
        if not (np.isfinite(now) and now >= self._now):
            raise ValueError(
                f"now_seconds is {now} after {self._now}: give a finite time that does not run "
                "backwards."
            )
        ended = self.next_done()
        if ended is not None and ended[0] < now:
            raise ValueError(
                f"now_seconds is {now}, and upload {ended[1]} was done at {ended[0]}: finish it "
                "then, before time goes on."
            )
        if not self._keys or now == self._now:
            # Time may stand still while uploads end, also those of bits too few to count.
            return np.where(self._done_at <= now, 0.0, self._left)
        left = self._left - (now - self._now) / self._pace
        # What is due now is done, whatever rounding left of it.
        return np.where((self._done_at <= now) | (left <= _ROUNDING * self._bits), 0.0, left)

    def _set(
        self, now: float, keys: Sequence[int], clients: IntArray, bits: FloatArray, left: FloatArray
    ) -> None:
        pace = np.asarray(self._seconds_per_bit(clients), dtype=np.float64) if len(keys) else left
        if pace.shape != clients.shape or not (pace > 0).all():
            raise ValueError(
                f"seconds_per_bit gave {pace} for clients {clients}: it must return a number > 0 "
                "for each."
            )
        self._now, self._keys, self._clients = float(now), list(keys), clients
        self._bits, self._left, self._pace = bits, left, pace
        self._done_at = _done_at(self._now, left, pace)


def _done_at(now: float, left: FloatArray, pace: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return now + np.where(left > 0, left * pace, 0.0)  # no bits take no time at rate 0


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
