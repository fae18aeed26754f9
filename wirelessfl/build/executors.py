"""Where a run is computed: device, executor, chunk, workers and threads, resolved once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.algorithms import Algorithm
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import part_sizes
from wirelessfl.errors import ConfigError
from wirelessfl.processes import cores
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.cohort import Penalty, need_features
from wirelessfl.training.executor import Executor, Job, TrainingData, even_parts
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.program import TensorExecutor
from wirelessfl.training.stacked import StackedExecutor, why_not_stacked
from wirelessfl.training.trial import check_model, why_not_vmapped
from wirelessfl.training.tuning import (
    PARTS,
    candidates,
    default_chunk,
    estimated_step_seconds,
    fastest_chunk,
)
from wirelessfl.training.vmapped import VmapExecutor
from wirelessfl.training.workers import (
    WorkersExecutor,
    prepare_workers,
    slot_vectors,
    why_no_workers,
)
from wirelessfl.warm_starts.checked import Checked

GPU_CHUNK = 256
LONG_SECONDS = 10.0  # of estimated training; shorter runs do without workers and replay
USUAL_STEP_SECONDS = 3e-4  # of a client's local step, before the model is known
EXECUTORS: dict[str, type[Executor]] = {
    cls.name: cls for cls in (StackedExecutor, VmapExecutor, LoopExecutor)
}


def build_executor(
    config: Config,
    objective: Objective,
    algorithm: Algorithm,
    dataset: Dataset,
    parts: Sequence[IntArray],
    notes: list[str],
    stream: Stream,
    together: int | None = None,
    updates: int | None = None,
) -> tuple[Executor, Config]:
    """The executor, and the configuration with what was automatic resolved.

    Args:
        config: the settings.
        objective: what is trained; its module is moved to the device.
        algorithm: the client rule.
        dataset: what it is trained on.
        parts: each client's samples.
        notes: gets lines that the user should know.
        stream: where the order of samples comes from.
        together: clients that train at a time; None: those of a round.
        updates: that make a merge; None: one of each client that trains at a time.

    Raises:
        ConfigError: the device, executor or number of workers cannot be had.
    """
    device = _device(config.run.device)
    objective.module.to(device)
    # No client fills a larger batch. One width for all, whoever trains in the same chunk.
    batch_size = min(config.training.batch_size, int(part_sizes(parts).max()))
    source = BatchSource(parts, batch_size, stream)
    data = TrainingData(dataset.train_inputs.to(device), dataset.train_labels.to(device), source)
    warm_start = config.build_warm_start()
    penalties = algorithm.penalties
    if warm_start is not None:  # those of a session that has one before it
        penalties += Checked(warm_start).penalties(1, ())
    kind = _kind(config, objective, penalties, data, dataset.classes, notes)
    threads = default_threads(config)
    maker = _Maker(objective, data, kind, config.run.seed)
    clients = together or config.training.clients_per_round or len(parts)
    if device.type == "cpu":
        jobs = partial(_two_steps, objective, algorithm, data, len(parts))
        steps = client_steps(config, updates or clients)
        found = _on_cpu(config, maker, jobs, algorithm, threads, clients, steps)
    else:
        found = _on_gpu(config, maker, batch_size)
    executor = maker.make(found.chunk, found.replay)
    if found.workers > 1:
        batches = len(even_parts(clients, found.chunk))
        if batches < found.workers:
            notes.append(
                f"{batches} of {found.workers} workers have work, as {clients} clients train in "
                f"chunks of {found.chunk}: a smaller --chunk uses all."
            )
        executor = WorkersExecutor(executor, found.workers, threads)
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

    objective: Objective
    data: TrainingData
    kind: type[Executor]
    seed: int

    def make(self, chunk: int, replay: bool) -> Executor:
        """One for ``chunk`` clients at a time, whose local steps are replayed or not."""
        if self.kind is LoopExecutor:
            return LoopExecutor(self.objective, self.data, chunk, seed=self.seed)
        if self.data.inputs.is_cuda:
            assert issubclass(self.kind, TensorExecutor)
            return self.kind(self.objective, self.data, chunk, recorded=replay)
        if self.kind is VmapExecutor:
            return VmapExecutor(self.objective, self.data, chunk, flat=replay)
        return self.kind(self.objective, self.data, chunk)


class _Found(NamedTuple):
    """What was given, and what follows from the work for the rest."""

    chunk: int
    workers: int
    replay: bool


def _on_cpu(
    config: Config,
    maker: _Maker,
    jobs: Callable[[int], Job],
    algorithm: Algorithm,
    threads: int,
    clients: int,
    steps: int,
) -> _Found:
    """On a CPU, for a cohort of ``clients`` and that many local steps in the run.

    Nothing is timed unless ``--chunk tune`` asks for it. The number of workers may follow the
    machine, so it decides nothing else: results must not depend on it.

    Raises:
        ConfigError: the number of workers cannot be had.
    """
    batch_size = maker.data.source.batch_size
    step = estimated_step_seconds(maker.objective, maker.data.first(4)[0], batch_size)
    long = steps * step > LONG_SECONDS
    # Step sizes that change from round to round would be recorded anew in each.
    steady = algorithm.fixed_shapes and config.training.lr_schedule == "constant"
    replay = (long and steady) if config.run.replay is None else config.run.replay == "on"
    replay = replay and maker.kind is VmapExecutor  # stacked layers gain nothing from it
    if config.run.chunk == "tune":
        one = maker.kind is LoopExecutor
        sizes = [1] if one else candidates(-(-clients // PARTS), maker.objective.spec.size)
        with computing(threads):
            chunk = fastest_chunk(partial(maker.make, replay=replay), jobs, sizes)
    else:
        chunk = config.run.chunk or default_chunk(
            maker.kind, maker.objective, clients, batch_size, step
        )
    asked = config.run.workers or 1
    if asked == "auto":
        workers = min(cores() // threads, len(even_parts(clients, chunk))) if long else 1
    else:
        workers = asked
        _check_workers(workers, threads, clients)
    if workers < 2:
        return _Found(chunk, 1, replay)
    reason = why_no_workers(maker.make(chunk, replay), workers, slot_vectors(algorithm))
    if reason is not None and asked != "auto":
        raise ConfigError(f"workers is {workers}: {reason}. Choose workers 1.")
    return _Found(chunk, workers if reason is None else 1, replay)


def _on_gpu(config: Config, maker: _Maker, batch_size: int) -> _Found:
    """On a GPU: one process.

    Raises:
        ConfigError: workers or a timed chunk are asked for.
    """
    device = maker.data.inputs.device
    if config.run.workers not in (None, "auto", 1):
        raise ConfigError(
            f"workers is {config.run.workers}, and the device {device}: workers are for the "
            "CPU. Choose workers 1, or several processes by torchrun."
        )
    if config.run.chunk == "tune":
        raise ConfigError(
            f'chunk is "tune", and the device {device}: chunks are timed on the CPU alone. Give a '
            "number, or leave it out."
        )
    steady = config.training.lr_schedule == "constant"
    wanted = config.run.replay or ("on" if steady else "off")
    replay = maker.kind is not LoopExecutor and wanted == "on"
    return _Found(config.run.chunk or _gpu_chunk(maker.objective, batch_size, device), 1, replay)


def _check_workers(workers: int, threads: int, clients: int) -> None:
    """Refuse processes that would have nothing to do, or no core.

    Raises:
        ConfigError: there are such.
    """
    if workers == 1:
        return
    if workers > clients:
        raise ConfigError(
            f"workers={workers} exceeds the {clients} clients that train at a time. Choose 1 to "
            f"{clients}."
        )
    if workers * threads > cores():
        if threads > 1:
            raise ConfigError(
                f"workers={workers} conflicts with threads={threads} on {cores()} cores: choose "
                "fewer workers or threads."
            )
        raise ConfigError(
            f"workers={workers} exceeds the number of cores, {cores()}. Choose 1 to {cores()}."
        )


def _kind(
    config: Config,
    objective: Objective,
    penalties: tuple[Penalty, ...],
    data: TrainingData,
    classes: int,
    notes: list[str],
) -> type[Executor]:
    """The executor's class: the one asked for, or the fastest that can train the model.

    Raises:
        ConfigError: the one asked for cannot.
    """
    name, model = config.run.executor, type(objective.module).__name__
    x, y = data.first(4)
    alone = check_model(objective, x, y, classes)
    features = need_features(penalties)
    if features:
        with torch.no_grad(), torch.random.fork_rng():
            objective.outputs(x, features=True)  # a model without any is refused now
    if name == "loop":
        return LoopExecutor
    if name == "stacked" and features:
        raise ConfigError(
            'executor "stacked" cannot train what compares the features of models, as the loss of '
            f'{_comparing(config)} does. Choose "vmap".'
        )
    unstacked = alone or ("it has no features" if features else why_not_stacked(objective, data))
    if name != "vmap" and unstacked is None:
        return StackedExecutor
    alone = alone or why_not_vmapped(objective, x, y)
    if alone is not None and name in ("vmap", "stacked"):
        raise ConfigError(f'executor "{name}" cannot run this model: {alone}. Choose "loop".')
    if name == "stacked":
        raise ConfigError(
            f'executor "stacked" cannot train model {model}: {unstacked}. Choose "vmap".'
        )
    if alone is not None:
        notes.append(f"executor loop, one client at a time: {alone}.")
        return LoopExecutor
    return VmapExecutor


def _two_steps(
    objective: Objective, algorithm: Algorithm, data: TrainingData, clients: int, size: int
) -> Job:
    """Two steps of the first ``size`` of the ``clients``, from the full model."""
    who = np.arange(size) % clients
    none = np.zeros(size, dtype=np.int64)
    start = objective.spec.from_module(objective.module)
    server = {key: value[None] for key, value in algorithm.initial(start).items()}
    penalties = algorithm.penalties
    return Job(
        algorithm,
        objective.spec,
        algorithm.outgoing(server),
        none,
        who,
        none,
        2,
        penalties=penalties,
    )


def client_steps(config: Config, updates: int) -> int:
    """Local steps of all clients in the whole run, of so many updates per merge."""
    training = config.training
    return config.total_rounds * (training.edge_rounds or 1) * training.local_steps * updates


def expect_workers(config: Config, updates: int) -> None:
    """Start the imports of worker processes in the background if the run will probably use some.

    Call it before data are loaded: the size of the model is not known then, so that it goes by the
    number of local steps.
    """
    workers = config.run.workers or 1
    steps = client_steps(config, updates)
    if workers == "auto" and cores() > 1 and not torch.cuda.is_available():
        workers = 2 if steps * USUAL_STEP_SECONDS > LONG_SECONDS else 1
    if workers != "auto" and 1 < workers <= cores():
        prepare_workers()


def _gpu_chunk(objective: Objective, batch_size: int, device: torch.device) -> int:
    """As many clients as fit well, on a GPU: a step holds a handful of copies of each.

    It follows from the memory of the device, not from what is free of it at the moment. A module
    with few trained parameters and many others may say what a sample takes in training,
    ``bytes_per_sample``.
    """
    usable = int(0.8 * torch.cuda.get_device_properties(device).total_memory)
    samples = batch_size * objective.bytes_per_sample
    return max(min(GPU_CHUNK, usable // (16 * 4 * objective.spec.size + samples)), 1)


def default_threads(config: Config) -> int:
    """CPU threads of each process: one, unless the settings say.

    The models that are trained on CPUs are small: threads that wait for each other at every
    operation bring little on idle cores, and stall where others use these. Cores are for processes.
    """
    return config.run.threads or 1


def fewer_workers(config: Config) -> Config:
    """Settings of a run that began elsewhere, with no more workers than this machine has cores.

    Those of its tasks are lowered too.
    """
    most = max(cores() // (config.run.threads or 1), 1)
    workers = config.run.workers
    if isinstance(workers, int) and workers > most:
        config = config.model_copy(update={"run": config.run.model_copy(update={"workers": most})})
    tables = tuple(
        table | {"workers": min(table["workers"], most)}
        if isinstance(table.get("workers"), int)
        else table
        for table in config.task
    )
    return config.model_copy(update={"task": tables}) if config.task else config


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
        raise ConfigError(
            f"device {name!r} cannot be used: {first.rstrip('.')}. Choose auto or cpu."
        ) from error
    return device


def _comparing(config: Config) -> str:
    """Who compares features: the algorithm, or else the warm start."""
    if need_features(config.build_algorithm().penalties) or config.warm_start is None:
        return f'algorithm "{config.algorithm["name"]}"'
    return f'warm_start "{config.warm_start["name"]}"'
