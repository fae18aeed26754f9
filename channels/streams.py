"""Randomness with names: every draw comes from a stream derived from (seed, names...).

A stream is counter-based (Philox), so opening one is cheap, one stream serves many events by index,
and no draw depends on the order in which others were made.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from channels.checks import whole_number

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
            TypeError: ``index`` is no integer.
        """
        return int.from_bytes(self._digest(8, whole_number("index", index)), "little")

    def generator(self, index: int = 0) -> np.random.Generator:
        """A NumPy generator at event ``index`` of this stream, with 2^192 draws of room.

        Args:
            index: in [0, 2^64).

        Raises:
            TypeError: ``index`` is no integer.
            ValueError: it is out of range.
        """
        index = whole_number("index", index)
        if not 0 <= index < 1 << 64:
            raise ValueError(f"index is {index}: give 0 or more, below 2^64.")
        key = np.frombuffer(self._digest(16), dtype=np.uint64)
        counter = np.array([0, 0, 0, index], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=counter))

    def _digest(self, size: int, *extra: int) -> bytes:
        path = repr((self.seed, list(self.names), *extra))
        return hashlib.blake2b(path.encode(), digest_size=size).digest()
