"""The ways of training that the benchmark compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from wirelessfl.processes import cores
from wirelessfl.training.executor import Executor, TrainingData
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.tuning import default_chunk, estimated_step_seconds
from wirelessfl.training.vmapped import VmapExecutor
from wirelessfl.training.workers import WorkersExecutor

PLAIN = "plain loop, one thread"
GENERAL = "any module, workers"
FAST = "stacked layers, workers"


class Way(NamedTuple):
    """A way of training.

    Args:
        kind: the executor.
        chunk: clients at a time; None for what a run takes by default.
        workers: processes of one thread; 1 for this process.
    """

    kind: type[Executor]
    chunk: int | None
    workers: int


def ways() -> dict[str, Way]:
    """All of them by name; the plain loop is not among them."""
    many = max(cores(), 2)
    return {
        "loop executor": Way(LoopExecutor, 1, 1),
        "vmap, chunks of 10": Way(VmapExecutor, 10, 1),
        "stacked layers": Way(StackedExecutor, None, 1),
        GENERAL: Way(VmapExecutor, None, many),
        FAST: Way(StackedExecutor, None, many),
    }


def build(way: Way, objective: Objective, data: TrainingData) -> Executor:
    """The executor of ``way``, in chunks as at the start of a run."""
    chunk = way.chunk
    if chunk is None:
        clients, batch_size = len(data.source.parts), data.source.batch_size
        seconds = estimated_step_seconds(objective, data.first(4)[0], batch_size)
        chunk = default_chunk(way.kind, objective, clients, batch_size, seconds)
    if way.kind is VmapExecutor and way.workers > 1:  # as a long run has it
        executor: Executor = VmapExecutor(objective, data, chunk, flat=True)
    else:
        executor = way.kind(objective, data, chunk)
    return executor if way.workers == 1 else WorkersExecutor(executor, way.workers)


def with_threads(threads: int, call: Callable[[], Any]) -> Any:
    """What ``call`` gives on so many CPU threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return call()
    finally:
        torch.set_num_threads(before)
