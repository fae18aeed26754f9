"""Random numbers by row: drawing some rows gives the same numbers as drawing all rows.

Each row, e.g. a client, has its own range of a Philox counter, so that rows can be drawn
separately. The bits are transformed element by element, with functions whose rounding does not
depend on the array's length. Matrix products lack this property: see
:func:`channels.fading.correlate`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray

WORDS = 4
"""Number of 64-bit words that Philox produces per counter value."""
AT_ONCE = 8192  # words per block; intermediate results must fit in the cache
HALF, LOW = np.uint64(32), np.uint64(2**32 - 1)
BRIDGED = 256  # largest gap, in counter values, that is faster to draw and discard than to skip


def uniforms(key: NDArray[np.uint64], index: int, rows: IntArray, width: int) -> FloatArray:
    """Uniform numbers in [0, 1), [rows, width], with 53 random bits."""
    out = np.empty((len(rows), width))
    for some, words in _words(key, index, rows, width):
        out[some] = (words >> np.uint64(11)) * 2.0**-53
    return out


def normals(key: NDArray[np.uint64], index: int, rows: IntArray, width: int) -> NDArray[np.float32]:
    """Standard normal numbers [rows, width].

    Box-Muller transform: 32 bits for the radius and 32 bits for the angle yield two numbers.
    """
    pairs = -(-width // 2)
    out = np.empty((len(rows), pairs, 2), dtype=np.float32)
    for some, words in _words(key, index, rows, pairs):
        # Double precision keeps every radius above 0; the largest is 6.8.
        radius = np.sqrt(-2 * np.log(((words >> HALF) + 0.5) * 2.0**-32)).astype(np.float32)
        angle = (words & LOW).astype(np.float32) * np.float32(2 * np.pi / 2**32)
        np.multiply(radius, np.cos(angle), out=out[some, :, 0])
        np.multiply(radius, np.sin(angle), out=out[some, :, 1])
    return out.reshape(len(rows), 2 * pairs)[:, :width]


def _words(
    key: NDArray[np.uint64], index: int, rows: IntArray, width: int
) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
    """Yield blocks of random words [rows of the block, width], each with its slice of ``rows``."""
    counters = -(-width // WORDS)  # counter values per row
    # The 1 in the counter's third word separates these words from those of Stream.generator.
    philox = np.random.Philox(key=key, counter=np.array([0, 0, 1, index], dtype=np.uint64))
    at, max_rows = 0, max(1, AT_ONCE // max(1, counters * WORDS))
    for start in range(0, len(rows), max_rows):
        some = rows[start : start + max_rows]
        steps = some[1:] - some[:-1]
        # Rows with small gaps are drawn in one run; the words between them are discarded.
        ends = (((steps < 1) | (steps * counters > BRIDGED)).nonzero()[0] + 1).tolist()
        parts = []
        for begin, end in zip([0, *ends], [*ends, len(some)], strict=True):
            first, last = int(some[begin]), int(some[end - 1])
            if first != at:
                philox.advance((first - at) * counters)
            at = last + 1
            drawn = philox.random_raw((at - first) * counters * WORDS)
            drawn = drawn.reshape(at - first, counters * WORDS)[:, :width]
            parts.append(drawn if len(drawn) == end - begin else drawn[some[begin:end] - first])
        words = parts[0] if len(parts) == 1 else np.concatenate(parts)
        yield slice(start, start + len(some)), words
