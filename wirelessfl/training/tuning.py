"""The chunk size: how many clients train at once, found by a short timing at start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from wirelessfl.training.executor import Executor, Job

CANDIDATES = (1, 6, 10, 20, 60, 200)
LARGEST_BYTES = 1 << 23  # parameters of a chunk; each process holds some ten copies of them
WORTH = 0.9  # a larger chunk has to be this much faster to be taken
PATIENCE = 10  # up to this size a slower one does not end the search


def candidates(clients: int, parameters: int) -> list[int]:
    """Chunk sizes to try, ascending.

    Args:
        clients: that train in a round.
        parameters: P of the full model.
    """
    room = max(LARGEST_BYTES // (4 * parameters), 1)
    sizes = sorted({min(size, clients) for size in CANDIDATES})
    return [size for size in sizes if size <= room] or [room]


def fastest_chunk(
    make: Callable[[int], Executor], job: Callable[[int], Job], sizes: Sequence[int]
) -> tuple[int, float]:
    """The chunk size with the least seconds a client, and those.

    Args:
        make: an executor of a given chunk size.
        job: a job of a few steps for the given number of clients.
        sizes: to try, ascending; larger ones are left out once one is slower.
    """
    best, least = sizes[0], float("inf")
    for size in sizes:
        executor, work = make(size), job(size)
        seconds = min(_seconds(executor, work) for _ in range(2)) / size
        if size > PATIENCE and seconds > 1.2 * least:
            break
        if seconds < WORTH * least:
            best, least = size, seconds
    return best, least


def _seconds(executor: Executor, job: Job) -> float:
    start = time.perf_counter()
    for _ in executor.train(job):
        pass
    return time.perf_counter() - start
