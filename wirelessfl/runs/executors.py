"""Where a run is computed: device, executor, chunk, workers and threads, resolved once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from channels.streams import Stream
from wirelessfl.algorithms import Algorithm
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.data.parts import part_sizes
from wirelessfl.errors import ConfigError
from wirelessfl.processes import cores
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.checks import why_alone
from wirelessfl.training.executor import Executor, Job, TrainingData, even_parts
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.penalties import Penalty, need_features
from wirelessfl.training.program import TensorExecutor
from wirelessfl.training.stacked import StackedExecutor, why_not_stacked
from wirelessfl.training.task import Task
from wirelessfl.training.tuning import candidates, fastest_chunk
from wirelessfl.training.vmapped import VmapExecutor
from wirelessfl.training.workers import WorkersExecutor, slot_vectors, why_no_workers
from wirelessfl.warm_starts.checks import Checked

GPU_CHUNK = 256
LONG_SECONDS = 20.0  # workers and recordings take seconds to start: shorter runs do without
EXECUTORS: dict[str, type[Executor]] = {
    cls.name: cls for cls in (StackedExecutor, VmapExecutor, LoopExecutor)
}


def build_executor(
    config: Config,
    task: Task,
    algorithm: Algorithm,
    dataset: Dataset,
    parts: Sequence[IntArray],
    notes: list[str],
    stream: Stream,
    together: int | None = None,
) -> tuple[Executor, Config]:
    """The executor, and the configuration with what was automatic resolved.

    Args:
        config: the settings.
        task: what is trained; its module is moved to the device.
        algorithm: the client rule.
        dataset: what it is trained on.
        parts: each client's samples.
        notes: gets lines that the user should know.
        stream: where the order of samples comes from.
        together: clients that train at a time; None: those of a round.

    Raises:
        ConfigError: the device, executor or number of workers cannot be had.
    """
    device = _device(config.run.device)
    task.module.to(device)
    # No client fills a larger batch. One width for all, whoever trains in the same chunk.
    batch_size = min(config.training.batch_size, int(part_sizes(parts).max()))
    source = BatchSource(parts, batch_size, stream)
    data = TrainingData(dataset.train_inputs.to(device), dataset.train_labels.to(device), source)
    warm_start = config.build_warm_start()
    penalties = algorithm.penalties
    if warm_start is not None:  # those of a session that has one before it
        penalties += Checked(warm_start).penalties(1, ())
    kind = _kind(config, task, penalties, data, dataset.classes, notes)
    threads = config.run.threads or torch.get_num_threads()

    maker = _Maker(task, data, kind, config.run.seed)
    if device.type == "cpu":
        jobs = partial(_two_steps, task, algorithm, data, len(parts))
        found = _tuned(config, maker, jobs, algorithm, threads, together)
    else:
        steady = config.training.lr_schedule == "constant"
        wanted = config.run.replay or ("on" if steady else "off")
        replay = kind is not LoopExecutor and wanted == "on"
        found = _Found(config.run.chunk or _gpu_chunk(task, batch_size), 1, replay)
        if config.run.workers not in (None, "auto", 1):
            raise ConfigError(
                f"workers is {config.run.workers}, and the device {device}: workers are for the "
                "CPU. Choose workers 1, or several processes by torchrun."
            )
    executor = maker.make(found.chunk, found.replay)
    if found.workers > 1:
        reason = why_no_workers(executor, found.workers, slot_vectors(algorithm))
        if reason is not None:
            raise ConfigError(f"workers is {found.workers}: {reason}. Choose workers 1.")
        executor = WorkersExecutor(executor, found.workers)
    resolved = {
        "device": str(device),
        "executor": kind.name,
        "chunk": executor.chunk,
        "replay": "on" if found.replay else "off",
        "workers": found.workers,
        "threads": threads,
    }
    return executor, config.model_copy(update={"run": config.run.model_copy(update=resolved)})


@dataclass(frozen=True)
class _Maker:
    """Makes executors of one kind for one run."""

    task: Task
    data: TrainingData
    kind: type[Executor]
    seed: int

    def make(self, chunk: int, replay: bool) -> Executor:
        """One for ``chunk`` clients at a time, whose local steps are replayed or not."""
        if self.kind is LoopExecutor:
            return LoopExecutor(self.task, self.data, chunk, seed=self.seed)
        if self.data.inputs.is_cuda:
            assert issubclass(self.kind, TensorExecutor)
            return self.kind(self.task, self.data, chunk, recorded=replay)
        if self.kind is VmapExecutor:
            return VmapExecutor(self.task, self.data, chunk, flat=replay)
        return self.kind(self.task, self.data, chunk)


class _Found(NamedTuple):
    """What the timing at start finds, or what was given."""

    chunk: int
    workers: int
    replay: bool


def _tuned(
    config: Config,
    maker: _Maker,
    jobs: Callable[[int], Job],
    algorithm: Algorithm,
    threads: int,
    together: int | None,
) -> _Found:
    """On a CPU: what was given, and what a short timing finds for the rest."""
    chunk, replay, workers = config.run.chunk, config.run.replay == "on", config.run.workers or 1
    clients = together or config.training.clients_per_round or len(maker.data.source.parts)
    if maker.kind is not VmapExecutor:
        replay = False  # stacked layers gain nothing from it
    # Step sizes that change from round to round would be recorded anew in each.
    steady = algorithm.one_shape and config.training.lr_schedule == "constant"
    undecided = maker.kind is VmapExecutor and config.run.replay is None and steady
    if chunk is not None and workers != "auto" and not undecided:
        return _Found(chunk, int(workers), replay)
    # A chunk each at least: a worker without one would be idle.
    most = -(-clients // (cores() if workers == "auto" else int(workers)))
    sizes = [1] if maker.kind is LoopExecutor else candidates(most, maker.task.spec.size)
    if chunk is not None:
        sizes = [chunk]
    with computing(threads if workers == 1 else 1):
        if undecided:
            _, seconds = fastest_chunk(partial(maker.make, replay=False), jobs, sizes[:1])
            replay = _is_long(config, clients, seconds / 2)
        chunk, seconds = fastest_chunk(partial(maker.make, replay=replay), jobs, sizes)
    if workers != "auto":
        return _Found(chunk, int(workers), replay)
    many = (
        min(cores(), len(even_parts(clients, chunk)))
        if _is_long(config, clients, seconds / 2)
        else 1
    )
    executor = maker.make(chunk, replay)
    fits = many == 1 or why_no_workers(executor, many, slot_vectors(algorithm)) is None
    return _Found(chunk, many if fits else 1, replay)


def _kind(
    config: Config,
    task: Task,
    penalties: tuple[Penalty, ...],
    data: TrainingData,
    classes: int,
    notes: list[str],
) -> type[Executor]:
    """The executor's class: the one asked for, or the fastest that can train the model."""
    name = config.run.executor
    x, y = data.first(4)
    reason = why_alone(task, x, y, classes)
    if reason is not None and name in ("vmap", "stacked"):
        raise ConfigError(f'executor "{name}" cannot run this model: {reason}. Choose "loop".')
    features = need_features(penalties)
    if features:
        with torch.no_grad(), torch.random.fork_rng():
            task.outputs(x, features=True)  # a model without any is refused now
    if name in ("vmap", "loop"):
        return EXECUTORS[name]
    if reason is not None:
        notes.append(f"executor loop, one client at a time: {reason}.")
        return LoopExecutor
    if features and name == "stacked":
        raise ConfigError(
            'executor "stacked" cannot train what compares the features of models, as the loss of '
            f'{_comparing(config)} does. Choose "vmap".'
        )
    reason = "it has no features" if features else why_not_stacked(task, data)
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
    penalties = algorithm.penalties
    return Job(
        algorithm, task.spec, algorithm.outgoing(server), none, who, none, 2, penalties=penalties
    )


def _is_long(config: Config, clients: int, seconds: float) -> bool:
    """Whether the run repays a slow start, where a client's step takes ``seconds`` on a thread."""
    training = config.training
    steps = config.total_rounds * (training.edge_rounds or 1) * training.local_steps * clients
    return steps * seconds > LONG_SECONDS


def _gpu_chunk(task: Task, batch_size: int) -> int:
    """As many clients as fit well, on a GPU: a step holds a handful of copies of each.

    A module with few trained parameters and many others may say what a sample takes in training,
    ``bytes_per_sample``.
    """
    free, _ = torch.cuda.mem_get_info()
    samples = batch_size * int(getattr(task.module, "bytes_per_sample", 0))
    return max(min(GPU_CHUNK, free // (16 * 4 * task.spec.size + samples)), 1)


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


def _comparing(config: Config) -> str:
    """Who compares features: the algorithm, or else the warm start."""
    if need_features(config.build_algorithm().penalties) or config.warm_start is None:
        return f'algorithm "{config.algorithm["name"]}"'
    return f'warm_start "{config.warm_start["name"]}"'
