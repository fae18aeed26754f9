"""The executors that the benchmarks compare, configured as in runs."""

from __future__ import annotations

from typing import NamedTuple

from wirelessfl.training.executor import Executor, TrainingData
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.step_costs import default_chunk, estimated_step_seconds
from wirelessfl.training.workers.processes import cores
from wirelessfl.training.workers.workers_executor import WorkersExecutor

PLAIN = "plain loop, one thread"
GENERAL = "vmap, one worker per core"
FAST = "stacked, one worker per core"


class ExecutorChoice(NamedTuple):
    """An executor with its settings.

    Args:
        kind: class of the executor.
        chunk: number of clients that train together; None for the default of a run.
        workers: number of processes; 1 for this process only.
        threads: number of threads of each process.
    """

    kind: type[Executor]
    chunk: int | None
    workers: int = 1
    threads: int = 1


def variants() -> dict[str, ExecutorChoice]:
    """All variants by name, without the plain loop."""
    many = max(cores(), 2)
    return {
        "loop, one thread": ExecutorChoice(LoopExecutor, 1),
        "vmap, chunks of 10, one thread": ExecutorChoice(VmapExecutor, 10),
        "stacked, one thread": ExecutorChoice(StackedExecutor, None),
        "stacked, one thread per core": ExecutorChoice(StackedExecutor, None, threads=many),
        GENERAL: ExecutorChoice(VmapExecutor, None, many),
        FAST: ExecutorChoice(StackedExecutor, None, many),
    }


def build(variant: ExecutorChoice, objective: Objective, data: TrainingData) -> Executor:
    """Build the executor of ``variant``, by default with the chunk size that a run would use."""
    chunk = variant.chunk
    if chunk is None:
        clients, batch_size = len(data.source.client_samples), data.source.batch_size
        seconds = estimated_step_seconds(objective, data.first(4)[0], batch_size)
        chunk = default_chunk(variant.kind, objective, clients, batch_size, seconds)
    if variant.kind is VmapExecutor and variant.workers > 1:  # as in a long run
        executor: Executor = VmapExecutor(objective, data, chunk, flat=True)
    else:
        executor = variant.kind(objective, data, chunk)
    return executor if variant.workers == 1 else WorkersExecutor(executor, variant.workers)
