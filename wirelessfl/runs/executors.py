"""Where a run is computed: device, executor, chunk and threads, resolved once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from channels.streams import Stream
from wirelessfl.algorithms import Algorithm
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.batches import draw_batches
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.task import Task, why_alone
from wirelessfl.training.tuning import candidates, fastest_chunk
from wirelessfl.training.vmapped import VmapExecutor

GPU_CHUNK = 256


def build_executor(
    config: Config,
    task: Task,
    algorithm: Algorithm,
    data: Dataset,
    parts: list[IntArray],
    notes: list[str],
) -> tuple[Executor, Config]:
    """The executor, and the configuration with what was automatic resolved."""
    device = _device(config.run.device)
    task.module.to(device)
    start = task.spec.from_module(task.module)
    inputs, labels = data.train_inputs.to(device), data.train_labels.to(device)
    name = config.run.executor
    reason = why_alone(task, inputs[:4], labels[:4], data.classes)
    if reason is not None and name == "vmap":
        raise ConfigError(f'executor "vmap" cannot run this model: {reason}. Choose "loop".')
    if reason is not None and name == "auto":
        notes.append(f"executor loop, one client at a time: {reason}.")
        name = "loop"
    name = "vmap" if name == "auto" else name
    threads = config.run.threads or torch.get_num_threads()

    def make(chunk: int) -> Executor:
        if name == "loop":
            return LoopExecutor(task, inputs, labels, seed=config.run.seed)
        return VmapExecutor(task, inputs, labels, chunk)

    def two_steps(clients: int) -> Job:
        """The first clients' first steps from the full model."""
        who, none = np.arange(clients), np.zeros(clients, dtype=np.int64)
        size, stream = config.training.batch_size, Stream(config.run.seed)
        batches = draw_batches(parts, who, none, 2, size, stream)
        server = {key: value[None] for key, value in algorithm.initial(start).items()}
        return Job(algorithm, task.spec, server, none, who, 2, batches.of)

    chunk = 1 if name == "loop" else config.run.chunk
    if chunk is None and device.type == "cpu":
        with computing(threads):
            sizes = candidates(len(parts), task.spec.size)
            chunk = fastest_chunk(make, two_steps, sizes)
    chunk = chunk or GPU_CHUNK
    resolved = {"device": str(device), "executor": name, "chunk": chunk, "threads": threads}
    config = config.model_copy(update={"run": config.run.model_copy(update=resolved)})
    return make(chunk), config


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
