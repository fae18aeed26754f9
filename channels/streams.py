"""Randomness with names: every draw comes from a stream derived from (seed, names...).

A stream is counter-based (Philox), so opening one is cheap, one stream serves many events by index,
and no draw depends on the order in which others were made.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels import draws
from channels.arrays import FloatArray, IntArray
from channels.validation import checked_rows, shown, whole_number

Name = str | int


@dataclass(frozen=True)
class Stream:
    """A named source of randomness; equal names under equal seeds draw equal numbers.

    Args:
        seed: the run's seed, any integer.
        names: path of the stream, e.g. ``("round", 3, "client", 17, "batches")``.

    Raises:
        TypeError: the seed is no integer, or a name neither integer nor text.
    """

    seed: int
    names: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        # NumPy integers count as the numbers they are: their repr is not that of an int.
        object.__setattr__(self, "seed", whole_number("seed", self.seed))
        if not isinstance(self.names, tuple | list):
            raise TypeError(f"names is {shown(self.names)}: give a tuple of texts and integers.")
        names = tuple(
            name if isinstance(name, str) else whole_number(f"names[{place}]", name)
            for place, name in enumerate(self.names)
        )
        object.__setattr__(self, "names", names)

    def child(self, *names: Name) -> Stream:
        """The stream below this one with ``names`` appended."""
        return Stream(self.seed, self.names + names)

    def key(self, index: int = 0) -> int:
        """64 bits that identify event ``index`` of this stream, for generators of other kinds.

        Args:
            index: any integer.

        Raises:
            TypeError: ``index`` is not an integer.
        """
        return int.from_bytes(self._digest(8, whole_number("index", index)), "little")

    def generator(self, index: int = 0) -> np.random.Generator:
        """A NumPy generator at event ``index`` of this stream, with 2^192 draws of room.

        Args:
            index: in [0, 2^64).

        Raises:
            TypeError: ``index`` is not an integer.
            ValueError: it is out of range.
        """
        counter = np.array([0, 0, 0, _checked_index(index)], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self._philox_key(), counter=counter))

    def normals(self, index: int, rows: ArrayLike, width: int) -> NDArray[np.float32]:
        """Standard normal numbers by row, e.g. by client: a row does not depend on the others.

        Row i has its own place in the counter, so that some rows equal, bit for bit, those of a
        draw of all, and take time for themselves alone. They are independent of
        :meth:`generator`'s numbers. Numbers of the same index with another width, or from
        :meth:`uniforms`, are not independent: take them from a child stream.

        Args:
            index: event of the stream, in [0, 2^64).
            rows: [rows], their numbers, integers in [0, 2^48); in increasing order is fastest.
            width: numbers in a row, 0 to 2^16.

        Returns:
            [rows, width] float32.

        Raises:
            TypeError: ``index`` or ``width`` is not an integer.
            ValueError: a value is out of range.
        """
        return draws.normals(self._philox_key(), *_checked_block(index, rows, width))

    def uniforms(self, index: int, rows: ArrayLike, width: int) -> FloatArray:
        """Uniform numbers in [0, 1) by row, [rows, width] float64; else as :meth:`normals`."""
        return draws.uniforms(self._philox_key(), *_checked_block(index, rows, width))

    def _philox_key(self) -> NDArray[np.uint64]:
        return np.frombuffer(self._digest(16), dtype=np.uint64)

    def _digest(self, size: int, *extra: int) -> bytes:
        path = repr((self.seed, list(self.names), *extra))
        return hashlib.blake2b(path.encode(), digest_size=size).digest()


def _checked_index(index: int) -> int:
    index = whole_number("index", index)
    if not 0 <= index < 1 << 64:
        raise ValueError(f"index is {index}: give 0 or more, below 2^64.")
    return index


def _checked_block(index: int, rows: ArrayLike, width: int) -> tuple[int, IntArray, int]:
    """The arguments of draws by row."""
    width = whole_number("width", width)
    if not 0 <= width <= 1 << 16:
        raise ValueError(f"width is {width}: give 0 to 2^16 numbers a row.")
    checked = checked_rows("rows", rows)
    if checked.size and checked.max() >= 1 << 48:
        raise ValueError(f"rows holds {checked.max()}: give numbers below 2^48.")
    return _checked_index(index), checked, width
