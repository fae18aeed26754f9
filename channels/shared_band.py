"""Uploads that share a band in continuous time: each active upload slows the others down.

In asynchronous training clients do not upload together. Each uploading client has a share of the
band, as in :mod:`channels.links`; the share changes whenever another upload starts or ends
(processor sharing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray
from channels.validation import whole_number

# A remainder below this fraction of an upload is a rounding error.
_ROUNDING = 1e-12


class SharedBand:
    """Active uploads and their remaining bits; each change costs O(uploads) operations.

    Between changes every upload proceeds at a constant rate. A change first advances all uploads to
    its time at the old rates, then computes new rates. A completed upload must be removed with
    :meth:`finish` at its completion time, before the clock advances further. Uploads that complete
    at the same instant are returned in the order in which they started.

    Args:
        seconds_per_bit: function of the uploading clients, [uploads] in order of their starts. It
            returns the seconds per bit of each upload while exactly these are active; > 0, inf for
            no progress. Its result may change only when an upload starts or ends.

    Example, for the channels of a block and at most one upload per client at a time::

        def seconds_per_bit(clients):
            active = np.isin(np.arange(draw.network.clients), clients)
            return ofdma_seconds_per_bit(draw, active)[clients]
    """

    def __init__(self, seconds_per_bit: Callable[[IntArray], ArrayLike]) -> None:
        self._seconds_per_bit = seconds_per_bit
        self._now = -np.inf
        self._keys: list[int] = []
        self._clients = np.empty(0, dtype=np.int64)
        self._bits = np.empty(0)  # total bits of each upload
        self._left = np.empty(0)  # remaining bits at time _now
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
                is in use, ``bits`` is out of range, or ``seconds_per_bit`` returns invalid values.
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
        """Time and key of the upload that ends first at the current rates, or None."""
        if not self._keys:
            return None
        first = int(self._done_at.argmin())
        seconds = float(self._done_at[first])
        return None if seconds == np.inf else (seconds, self._keys[first])

    def finish(self, now_seconds: float, key: int) -> None:
        """Remove a completed upload at the time that :meth:`next_done` returned.

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
        self._take(now_seconds, index)

    def remove(self, now_seconds: float, key: int) -> float:
        """Cancel an upload.

        Returns:
            The bits that remained.

        Raises:
            ValueError: the upload is not active, or the time is before the last change or after
                the end of an upload.
        """
        return self._take(now_seconds, self._index_of(key))

    def snapshot(self) -> dict[str, Any]:
        """The state as a dictionary for JSON; None stands for infinity."""
        return {
            "seconds": _finite(self._now),
            "keys": list(self._keys),
            "clients": self._clients.tolist(),
            "bits": self._bits.tolist(),
            "bits_left": self._left.tolist(),
            "seconds_per_bit": [_finite(pace) for pace in self._pace.tolist()],
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore the state, including the rates, from the result of :meth:`snapshot`."""
        seconds = snapshot["seconds"]
        self._now = -np.inf if seconds is None else float(seconds)
        self._keys = [int(key) for key in snapshot["keys"]]
        self._clients = np.array(snapshot["clients"], dtype=np.int64)
        self._bits = np.array(snapshot["bits"], dtype=np.float64)
        self._left = np.array(snapshot["bits_left"], dtype=np.float64)
        paces = [np.inf if pace is None else pace for pace in snapshot["seconds_per_bit"]]
        self._pace = np.array(paces, dtype=np.float64)
        self._done_at = _done_at(self._now, self._left, self._pace)

    def _take(self, now: float, index: int) -> float:
        """Remove the upload at ``index``; return its remaining bits."""
        left = self._left_at(now)
        keys = self._keys[:index] + self._keys[index + 1 :]
        clients, bits = np.delete(self._clients, index), np.delete(self._bits, index)
        self._set(now, keys, clients, bits, np.delete(left, index))
        return float(left[index])

    def _index_of(self, key: int) -> int:
        try:
            return self._keys.index(key)
        except ValueError:
            raise ValueError(
                f"key is {key}, which is not the key of an active upload: choose an active upload."
            ) from None

    def _left_at(self, now: float) -> FloatArray:
        """Remaining bits of each upload at ``now``, between the last change and the next end."""
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
        if not self._keys or now == self._now:
            # Several uploads may end at the same instant, including those with almost no bits.
            return np.where(self._done_at <= now, 0.0, self._left)
        left = self._left - (now - self._now) / self._pace
        # An upload that is due now is complete, even if a rounding error remains.
        return np.where((self._done_at <= now) | (left <= _ROUNDING * self._bits), 0.0, left)

    def _set(
        self, now: float, keys: Sequence[int], clients: IntArray, bits: FloatArray, left: FloatArray
    ) -> None:
        pace = np.asarray(self._seconds_per_bit(clients), dtype=np.float64) if len(keys) else left
        if pace.shape != clients.shape or not (pace > 0).all():
            raise ValueError(
                f"seconds_per_bit returned {pace} for clients {clients}: it must return a number "
                "> 0 for each."
            )
        self._now, self._keys, self._clients = float(now), list(keys), clients
        self._bits, self._left, self._pace = bits, left, pace
        self._done_at = _done_at(self._now, left, pace)


def _done_at(now: float, left: FloatArray, pace: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return now + np.where(left > 0, left * pace, 0.0)  # 0 bits take 0 s even at rate 0


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
