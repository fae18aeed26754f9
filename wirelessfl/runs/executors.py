"""Where a run is computed: device, executor, chunk, workers and threads, resolved once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch

from channels.streams import Stream
from wirelessfl.algorithms import Algorithm
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError
from wirelessfl.processes import cores
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.executor import Executor, Job, TrainingData, even_parts
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.stacked import StackedExecutor, why_not_stacked
from wirelessfl.training.task import Task, why_alone
from wirelessfl.training.tuning import candidates, fastest_chunk
from wirelessfl.training.vmapped import VmapExecutor
from wirelessfl.training.workers import WorkersExecutor, why_no_workers

GPU_CHUNK = 256
WORTH_SECONDS = 20.0  # workers take seconds to start: a shorter run does without
EXECUTORS: dict[str, type[Executor]] = {
    cls.name: cls for cls in (StackedExecutor, VmapExecutor, LoopExecutor)
}


def build_executor(
    config: Config,
    task: Task,
    algorithm: Algorithm,
    dataset: Dataset,
    parts: list[IntArray],
    notes: list[str],
) -> tuple[Executor, Config]:
    """The executor, and the configuration with what was automatic resolved.

    Args:
        config: the settings.
        task: what is trained; its module is moved to the device.
        algorithm: the client rule.
        dataset: what it is trained on.
        parts: each client's samples.
        notes: gets lines that the user should know.

    Raises:
        ConfigError: the device, executor or number of workers cannot be had.
    """
    device = _device(config.run.device)
    task.module.to(device)
    # No client fills a larger batch. One width for all, whoever trains in the same chunk.
    batch_size = min(config.training.batch_size, max(len(part) for part in parts))
    source = BatchSource(parts, batch_size, Stream(config.run.seed))
    data = TrainingData(dataset.train_inputs.to(device), dataset.train_labels.to(device), source)
    kind = _kind(config, task, data, dataset.classes, notes)
    threads = config.run.threads or torch.get_num_threads()

    def make(chunk: int) -> Executor:
        if kind is LoopExecutor:
            return LoopExecutor(task, data, chunk, seed=config.run.seed)
        return kind(task, data, chunk)

    workers: int | str = config.run.workers or 1
    chunk = config.run.chunk
    if device.type == "cpu":
        with computing(threads if workers == 1 else 1):
            jobs = partial(_two_steps, task, algorithm, data, len(parts))
            # A chunk each at least: a worker without one would be idle.
            most = -(-len(parts) // (cores() if workers == "auto" else int(workers)))
            sizes = [1] if kind is LoopExecutor else candidates(most, task.spec.size)
            seconds = 0.0
            if chunk is None or workers == "auto":
                chunk, seconds = fastest_chunk(make, jobs, [chunk] if chunk else sizes)
        if workers == "auto":
            workers = _worth(config, seconds / 2, len(even_parts(len(parts), chunk)))
            if why_no_workers(make(chunk), workers, len(algorithm.payloads)) is not None:
                workers = 1
    elif isinstance(workers, int) and workers > 1:
        raise ConfigError(
            f"workers is {workers}, and the device {device}: workers are for the CPU. Choose "
            "workers 1, or several processes by torchrun."
        )
    executor = make(chunk or _gpu_chunk(task.spec.size))
    workers = workers if isinstance(workers, int) else 1
    if workers > 1:
        reason = why_no_workers(executor, workers, len(algorithm.payloads))
        if reason is not None:
            raise ConfigError(f"workers is {workers}: {reason}. Choose workers 1.")
        executor = WorkersExecutor(executor, workers)
    resolved = {
        "device": str(device),
        "executor": kind.name,
        "chunk": executor.chunk,
        "workers": workers,
        "threads": threads,
    }
    return executor, config.model_copy(update={"run": config.run.model_copy(update=resolved)})


def _kind(
    config: Config, task: Task, data: TrainingData, classes: int, notes: list[str]
) -> type[Executor]:
    """The executor's class: the one asked for, or the fastest that can train the model."""
    name = config.run.executor
    x, y = data.inputs[:4], data.labels[:4]
    reason = why_alone(task, x, y, classes)
    if reason is not None and name in ("vmap", "stacked"):
        raise ConfigError(f'executor "{name}" cannot run this model: {reason}. Choose "loop".')
    if name in ("vmap", "loop"):
        return EXECUTORS[name]
    if reason is not None:
        notes.append(f"executor loop, one client at a time: {reason}.")
        return LoopExecutor
    reason = why_not_stacked(task, data)
    if reason is not None and name == "stacked":
        raise ConfigError(
            f'executor "stacked" cannot train model {type(task.module).__name__}: {reason}. Choose '
            '"vmap".'
        )
    return StackedExecutor if reason is None else VmapExecutor


def _two_steps(
    task: Task, algorithm: Algorithm, data: TrainingData, clients: int, size: int
) -> Job:
    """Two steps of the first ``size`` of the ``clients``, from the full model."""
    who = np.arange(size) % clients
    none = np.zeros(size, dtype=np.int64)
    start = task.spec.from_module(task.module)
    server = {key: value[None] for key, value in algorithm.initial(start).items()}
    return Job(algorithm, task.spec, server, none, who, none, 2)


def _worth(config: Config, seconds: float, chunks: int) -> int:
    """How many workers pay, where a client's step takes ``seconds`` on one thread."""
    training, clients = config.training, config.network.clients
    steps = training.rounds * (training.edge_rounds or 1) * training.local_steps * clients
    return min(cores(), chunks) if steps * seconds > WORTH_SECONDS else 1


def _gpu_chunk(parameters: int) -> int:
    """As many clients as fit well, on a GPU: a step holds a handful of copies of each."""
    free, _ = torch.cuda.mem_get_info()
    return max(min(GPU_CHUNK, free // (16 * 4 * parameters)), 1)


@contextmanager
def computing(threads: int) -> Iterator[None]:
    """torch's settings for the time of a run, on which sums depend to the last bit.

    CPU threads; on GPUs, convolutions in full float32 by deterministic algorithms.
    """
    cudnn = torch.backends.cudnn
    before = torch.get_num_threads(), cudnn.allow_tf32, cudnn.deterministic
    torch.set_num_threads(threads)
    cudnn.allow_tf32, cudnn.deterministic = False, True
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        cudnn.allow_tf32, cudnn.deterministic = before[1:]


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"device {name!r} cannot be used: {first} Choose auto or cpu.") from error
    return device
