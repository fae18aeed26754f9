"""Random numbers by row: drawing some rows gives the same numbers as drawing all rows.

Each row, e.g. a client, has its own range of a Philox counter, so that rows can be drawn
separately. The bits are transformed element by element, with functions whose rounding does not
depend on the array's length. Matrix products lack this property: see
:func:`channels.fading.correlate`.

Where every row has a stream of its own, Philox is computed here for all of them at once.
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
MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
WEYL = np.array([0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B], dtype=np.uint64)
ROUNDS = 10
"""Constants of Philox4x64-10 (Salmon et al., SC 2011)."""
BRIDGED = 256  # largest gap, in counter values, that is faster to draw and discard than to skip


def uniforms(key: NDArray[np.uint64], index: int, rows: IntArray, width: int) -> FloatArray:
    """Uniform numbers in [0, 1), [rows, width], with 53 random bits.

    Args:
        key: [2], key of the stream; or [rows, 2], that of each row's own stream.
        index: event of the stream.
        rows: [rows], row indices.
        width: numbers per row.
    """
    out = np.empty((len(rows), width))
    for some, words in _words(key, index, rows, width):
        out[some] = (words >> np.uint64(11)) * 2.0**-53
    return out


def normals(key: NDArray[np.uint64], index: int, rows: IntArray, width: int) -> NDArray[np.float32]:
    """Standard normal numbers [rows, width]; the arguments are those of ``uniforms``.

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
    if key.ndim == 2:
        yield from _words_of_streams(key, index, rows, width)
        return
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


def _words_of_streams(
    keys: NDArray[np.uint64], index: int, rows: IntArray, width: int
) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
    """The same for rows of different streams, with keys [rows, 2]."""
    counters = -(-width // WORDS)
    max_rows = max(1, AT_ONCE // max(1, counters * WORDS))
    for start in range(0, len(rows), max_rows):
        some = slice(start, start + max_rows)
        # NumPy's Philox increments its counter before it draws.
        first = rows[some, None] * counters + np.arange(1, counters + 1)
        shape = first.shape
        counter = [first.astype(np.uint64), *(np.full(shape, n, np.uint64) for n in (0, 1, index))]
        words = np.stack(_philox(counter, keys[some, None]), axis=-1)
        yield some, words.reshape(shape[0], -1)[:, :width]


def _philox(
    counter: list[NDArray[np.uint64]], keys: NDArray[np.uint64]
) -> list[NDArray[np.uint64]]:
    """Philox4x64-10 of counters, four words [...] each, with keys [..., 2]."""
    for number in range(ROUNDS):
        key = keys + np.uint64(number) * WEYL
        a, b, c, d = counter
        (high, low), (higher, lower) = _product(MULTIPLIERS[0], a), _product(MULTIPLIERS[1], c)
        counter = [higher ^ b ^ key[..., 0], lower, high ^ d ^ key[..., 1], low]
    return counter


def _product(
    factor: np.uint64, values: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """High and low words of products of 128 bits."""
    left, right = (factor >> HALF, factor & LOW), (values >> HALF, values & LOW)
    middle = left[0] * right[1] + ((left[1] * right[1]) >> HALF)
    carry = left[1] * right[0] + (middle & LOW)
    return left[0] * right[0] + (middle >> HALF) + (carry >> HALF), factor * values
