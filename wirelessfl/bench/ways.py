"""The ways of training that the benchmark compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from wirelessfl.bench.works import job_of
from wirelessfl.processes import cores
from wirelessfl.training.executor import Executor, Job, TrainingData
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.task import Task
from wirelessfl.training.tuning import candidates, fastest_chunk
from wirelessfl.training.vmapped import VmapExecutor
from wirelessfl.training.workers import WorkersExecutor

PLAIN = "plain loop, one thread"
GENERAL = "any module, workers"
FAST = "stacked layers, workers"


class Way(NamedTuple):
    """A way of training.

    Args:
        kind: the executor.
        chunk: clients at a time; None for what a short timing finds.
        workers: single-thread processes; 1 for this process and its threads.
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


def build(way: Way, task: Task, data: TrainingData) -> Executor:
    """The executor of ``way``, its chunk found as at the start of a run."""

    def make(chunk: int) -> Executor:
        if way.kind is VmapExecutor and way.workers > 1:  # as a long run has it
            return VmapExecutor(task, data, chunk, flat=True)
        return way.kind(task, data, chunk)

    def two_steps(size: int) -> Job:
        return replace(job_of(task, size), local_steps=2)

    chunk = way.chunk
    if chunk is None:
        sizes = candidates(len(data.source.parts), task.spec.size)
        threads = 1 if way.workers > 1 else torch.get_num_threads()
        chunk, _ = with_threads(threads, lambda: fastest_chunk(make, two_steps, sizes))
    executor = make(chunk)
    return executor if way.workers == 1 else WorkersExecutor(executor, way.workers)


def with_threads(threads: int, call: Callable[[], Any]) -> Any:
    """What ``call`` gives on so many CPU threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return call()
    finally:
        torch.set_num_threads(before)
