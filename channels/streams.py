"""Randomness with names: every draw comes from a stream derived from (seed, names...).

A stream is counter-based (Philox), so opening one is cheap, one stream serves many events by index,
and no draw depends on the order in which others were made.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

Name = str | int
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Stream:
    """A named source of randomness; equal names under equal seeds draw equal numbers.

    Args:
        seed: the run's seed, any integer.
        names: path of the stream, e.g. ``("round", 3, "client", 17, "batches")``.
    """

    seed: int
    names: tuple[Name, ...] = ()

    def child(self, *names: Name) -> Stream:
        """The stream below this one with ``names`` appended."""
        return Stream(self.seed, self.names + names)

    def key(self, index: int = 0) -> int:
        """64 bits that identify event ``index`` of this stream, for generators of other kinds."""
        return int.from_bytes(self._digest(8, int(index)), "little")

    def generator(self, index: int = 0) -> np.random.Generator:
        """A NumPy generator at event ``index`` of this stream, with 2^192 draws of room."""
        key = np.frombuffer(self._digest(16), dtype=np.uint64)
        counter = np.array([0, 0, 0, int(index) & _WORD], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=counter))

    def _digest(self, size: int, *extra: int) -> bytes:
        # NumPy integers count as the numbers they are: their repr is not that of an int.
        path = [name if isinstance(name, str) else int(name) for name in self.names]
        return hashlib.blake2b(
            repr((int(self.seed), path, *extra)).encode(), digest_size=size
        ).digest()
