"""Named random streams: every draw comes from a stream derived from (seed, names...).

Streams are counter-based (Philox): opening a stream is cheap, one stream serves many events by
index, and a draw does not depend on the order of other draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels import draws
from channels.arrays import FloatArray, IntArray
from channels.validation import checked_rows, shown, whole_number

Name = str | int
PLAIN = (str, int)


@dataclass(frozen=True)
class Stream:
    """A named source of randomness; equal seeds and names give equal numbers.

    >>> import channels
    >>> stream = channels.Stream(1, ("channel",))
    >>> stream.generator(3).integers(9) == stream.generator(3).integers(9)
    np.True_
    >>> stream.child("fading").names
    ('channel', 'fading')

    Args:
        seed: the run's seed, any integer.
        names: path of the stream, e.g. ``("round", 3, "client", 17, "batches")``.
    """

    seed: int
    names: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        # NumPy integers and strings become Python's, because the digest depends on their repr.
        if type(self.seed) is not int or abs(self.seed) >> 1023:
            object.__setattr__(self, "seed", whole_number("seed", self.seed))
        if not isinstance(self.names, tuple | list):
            raise TypeError(f"names is {shown(self.names)}: give a tuple of strings and integers.")
        names = tuple(
            name if type(name) in PLAIN else _plain(f"names[{i}]", name)
            for i, name in enumerate(self.names)
        )
        object.__setattr__(self, "names", names)

    def child(self, *names: Name) -> Stream:
        """The stream whose path is this stream's path followed by ``names``."""
        return Stream(self.seed, self.names + names)

    def key(self, index: int = 0) -> int:
        """A 64-bit key for event ``index`` of this stream, for seeding other generators.

        Args:
            index: event of the stream, any integer.
        """
        if type(index) is not int:
            index = whole_number("index", index)
        return int.from_bytes(self._digest(8, index), "little")

    def generator(self, index: int = 0) -> np.random.Generator:
        """A NumPy generator for event ``index`` of this stream, good for 2^128 draws.

        Args:
            index: event of the stream, in [0, 2^64).
        """
        counter = np.array([0, 0, 0, _checked_index(index)], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self.philox_key(), counter=counter))

    def normals(self, index: int, rows: ArrayLike, width: int) -> NDArray[np.float32]:
        """Standard normal numbers by row, e.g. by client; a row does not depend on other rows.

        Row i has its own range of the counter. Drawing some rows therefore gives numbers that are
        bit-identical to those of a draw of all rows, and takes time only for those rows. The
        numbers are independent of those of :meth:`generator`. Numbers with the same index and
        another width, or from :meth:`uniforms`, are not independent: draw them from a child stream.

        Args:
            index: event of the stream, in [0, 2^64).
            rows: [rows], row indices in [0, 2^48); increasing order is fastest.
            width: numbers per row, 0 to 2^16.

        Returns:
            [rows, width] float32.
        """
        return draws.normals(self.philox_key(), *_checked_block(index, rows, width))

    def uniforms(self, index: int, rows: ArrayLike, width: int) -> FloatArray:
        """Uniform numbers in [0, 1) by row, [rows, width] float64; otherwise like :meth:`normals`.

        Args:
            index: event of the stream, in [0, 2^64).
            rows: [rows], row indices in [0, 2^48).
            width: numbers per row, 0 to 2^16.
        """
        return draws.uniforms(self.philox_key(), *_checked_block(index, rows, width))

    def philox_key(self) -> NDArray[np.uint64]:
        """The two words [2] of this stream's Philox key."""
        return np.frombuffer(self._digest(16), dtype=np.uint64)

    def _digest(self, size: int, *extra: int) -> bytes:
        return _digest_of(self.seed, self.names, size, *extra)


StreamOrStreams = Stream | Sequence[Stream]
"""The randomness of one network, or of several."""


class Streams:
    """Streams that are drawn together, with the same number of rows each.

    Row r is row r % ``rows`` of stream r // ``rows``, bit for bit.

    Args:
        streams: the streams.
        rows: number of rows of each.
        names: further names, see :meth:`child`.
    """

    def __init__(self, streams: Sequence[Stream], rows: int, names: tuple[Name, ...] = ()) -> None:
        self.streams, self.rows, self.names = streams, rows, names

    def child(self, *names: Name) -> Streams:
        """The streams whose paths are followed by ``names``."""
        return Streams(self.streams, self.rows, self.names + names)

    def normals(self, index: int, rows: ArrayLike, width: int) -> NDArray[np.float32]:
        """See :meth:`Stream.normals`."""
        index, checked, width = _checked_block(index, rows, width)
        return draws.normals(self._keys[checked // self.rows], index, checked % self.rows, width)

    def uniforms(self, index: int, rows: ArrayLike, width: int) -> FloatArray:
        """See :meth:`Stream.uniforms`."""
        index, checked, width = _checked_block(index, rows, width)
        return draws.uniforms(self._keys[checked // self.rows], index, checked % self.rows, width)

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        """Philox keys [streams, 2]."""
        digests = [_digest_of(one.seed, one.names + self.names, 16) for one in self.streams]
        return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)


def _digest_of(seed: int, names: tuple[Name, ...], size: int, *extra: int) -> bytes:
    path = repr((seed, list(names), *extra))
    return hashlib.blake2b(path.encode(), digest_size=size).digest()


class Generators:
    """The generators of many streams one after the other, at a tenth of the time of new ones."""

    def __init__(self) -> None:
        self._philox = np.random.Philox(0)
        self._generator = np.random.Generator(self._philox)
        self._state = self._philox.state

    def at(self, key: NDArray[np.uint64], index: int) -> np.random.Generator:
        """Like ``stream.generator(index)`` for the stream with this key, until the next call.

        Args:
            key: the stream's ``philox_key()``.
            index: event of the stream, in [0, 2^64).
        """
        counter = np.array([0, 0, 0, index], dtype=np.uint64)
        self._state["state"] = {"counter": counter, "key": key}
        self._philox.state = self._state
        return self._generator

    def permutations(
        self, key: NDArray[np.uint64], first: int, count: int, size: int
    ) -> list[IntArray]:
        """Permutations [size] of 0 to size - 1 for ``count`` consecutive events of a stream.

        Args:
            key: the stream's ``philox_key()``.
            first: first event of the stream; the permutation of event i is that of
                ``stream.generator(i)``.
            count: number of events.
            size: number of entries.
        """
        return [self.at(key, index).permutation(size) for index in range(first, first + count)]


def _checked_index(index: int) -> int:
    index = whole_number("index", index)
    if not 0 <= index < 1 << 64:
        raise ValueError(f"index is {index}: give an integer from 0 to 2^64 - 1.")
    return index


def _checked_block(index: int, rows: ArrayLike, width: int) -> tuple[int, IntArray, int]:
    """Validated arguments of a draw by row."""
    width = whole_number("width", width)
    if not 0 <= width <= 1 << 16:
        raise ValueError(f"width is {width}: give 0 to 2^16 numbers per row.")
    checked = checked_rows("rows", rows)
    if checked.size and checked.max() >= 1 << 48:
        raise ValueError(f"rows contains {checked.max()}: give integers below 2^48.")
    return _checked_index(index), checked, width


def _plain(what: str, name: object) -> Name:
    """A string or an integer, of NumPy too, as one of Python."""
    return str(name) if isinstance(name, str) else whole_number(what, name)
