"""How many clients train at once: a rule by the size of the work, or a short timing on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.vmapped import VmapExecutor

CANDIDATES = (1, 6, 10, 20, 60, 200)
LARGEST_BYTES = 1 << 23
"""Parameters of a chunk. Beyond, they leave the caches; each process holds some ten copies."""
LARGEST_CHUNK = 20
"""Beyond, a step takes no less time per client on any model measured (docs/performance.md)."""
PARTS = 4
"""Chunks that a cohort is cut into at least, where a step is long, so that processes share it."""
LONG_STEP_SECONDS = 1e-3
SAMPLE_BYTES = 1 << 30
"""What the samples of a chunk may take, of a module that states its ``bytes_per_sample``."""
STEP_OVERHEAD_SECONDS = 1e-4
FLOP_PER_SECOND = 6e10
"""One thread of a server's core, about."""
WORTH = 0.9  # a larger chunk has to be this much faster to be taken
PATIENCE = 10  # up to this size a slower one does not end the search


def estimated_step_seconds(objective: Objective, x: Tensor, batch_size: int) -> float:
    """Seconds that a client's local step takes one thread, estimated from the model, not timed.

    Two operations per multiplication by a weight in the forward pass, and three such passes.

    Args:
        objective: model and loss.
        x: [batch, ...], any samples.
        batch_size: samples of a step.
    """
    multiplications = 0

    def count(module: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        nonlocal multiplications
        weights = [p for p in module.parameters(recurse=False) if p.ndim > 1]
        if not weights or isinstance(module, nn.Embedding):
            return
        channels = 1 if isinstance(module, _ConvNd) else -1
        tensors = [out] if isinstance(module, _ConvNd) else [*given, out]
        # A recurrent layer gives back its last position alone: the inputs tell how many there were.
        positions = max(
            (t.numel() // max(t.shape[channels], 1) for t in tensors if isinstance(t, Tensor)),
            default=0,
        )
        multiplications += positions * sum(parameter.numel() for parameter in weights)

    hooks = [module.register_forward_hook(count) for module in objective.module.modules()]
    try:
        with torch.no_grad(), torch.random.fork_rng():
            objective.module(x)
    finally:
        for hook in hooks:
            hook.remove()
    flop = 6 * multiplications * batch_size / len(x)
    return STEP_OVERHEAD_SECONDS + flop / FLOP_PER_SECOND


def default_chunk(
    kind: type[Executor], objective: Objective, clients: int, batch_size: int, seconds: float
) -> int:
    """Clients that train at once on a CPU, by what was measured on the models of this package.

    It depends on the work alone, not on cores, workers or load, as the last bits of results do.

    Args:
        kind: the executor.
        objective: model and loss.
        clients: that train in a round.
        batch_size: samples of a step.
        seconds: of a client's step, see ``estimated_step_seconds``.
    """
    if kind is LoopExecutor:
        return 1
    modules = objective.module.modules()
    if kind is VmapExecutor and any(isinstance(module, _ConvNd) for module in modules):
        return 1  # grouped convolutions are slower than one after the other
    room = LARGEST_BYTES // (4 * objective.spec.size)
    if sample := objective.bytes_per_sample:
        room = min(room, SAMPLE_BYTES // (sample * batch_size))
    if seconds > LONG_STEP_SECONDS:
        room = min(room, -(-clients // PARTS))
    return max(min(LARGEST_CHUNK, room, clients), 1)


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
) -> int:
    """The chunk size with the fewest seconds per client, by a short timing.

    Args:
        make: an executor of a given chunk size.
        job: a job of a few steps for the given number of clients.
        sizes: to try, ascending; larger ones are left out once one is slower.
    """
    best, min_seconds = sizes[0], float("inf")
    for size in sizes:
        executor, work = make(size), job(size)
        seconds = min(_seconds(executor, work) for _ in range(2)) / size
        if size > PATIENCE and seconds > 1.2 * min_seconds:
            break
        if seconds < WORTH * min_seconds:
            best, min_seconds = size, seconds
    return best


def _seconds(executor: Executor, job: Job) -> float:
    start = time.perf_counter()
    for _ in executor.train(job):
        pass
    return time.perf_counter() - start
