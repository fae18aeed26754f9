"""Builds the executor of a model; the defaults of chunk, workers and replay suit the workload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from channels.concurrency import cached_property
from wirelessfl.algorithms import Algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.packages import numba
from wirelessfl.base.torch_state import torch_settings
from wirelessfl.config.sections import RunSection
from wirelessfl.models.submodels.tracing import first_sentence
from wirelessfl.runs.build.computing import (
    LONG_SECONDS,
    WORKERS_SECONDS,
    Computing,
    Workload,
    check_workers,
    default_threads,
)
from wirelessfl.training.cohort import Penalty, need_features
from wirelessfl.training.executor import Executor, Job, TrainingData, even_parts
from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.recording import TensorExecutor
from wirelessfl.training.stacked import StackedExecutor, why_not_stacked
from wirelessfl.training.step_costs import (
    PARTS,
    candidates,
    default_chunk,
    estimated_sample_bytes,
    estimated_step_seconds,
    fastest_chunk,
    has_convolutions,
)
from wirelessfl.training.together import MEETING
from wirelessfl.training.trial import check_model, check_rounded, why_not_vmapped
from wirelessfl.training.workers.processes import cores
from wirelessfl.training.workers.workers_executor import (
    WorkersExecutor,
    slot_vectors,
    why_no_workers,
)

GPU_CHUNK = 256
LONG_CONVOLUTIONS_SECONDS = 0.1
"""Estimated step on a CPU from which convolutions of one client keep a GPU busy (6 GFLOP)."""


@dataclass(frozen=True, eq=False)
class ModelAndData:
    """A model and its training data, before its executor is chosen.

    Args:
        objective: model and loss; the module is on the device.
        data: training data on the device.
        classes: number of classes of the data set.
        label_hint: sentences on what may be wrong with the labels; "" if nothing is.
        clients: number of registered clients.
        algorithm: client and server rule.
        fixed_shapes: whether submodels have the same shapes in every round.
        penalties: all loss terms besides the cross-entropy, including those of warm starts.
        comparing: algorithm or warm start whose loss compares features, as named in messages.
        workload: amount of training.
        precision: of products and convolutions in training.
    """

    objective: Objective
    data: TrainingData
    classes: int
    label_hint: str
    clients: int
    algorithm: Algorithm
    fixed_shapes: bool
    penalties: tuple[Penalty, ...]
    comparing: str
    workload: Workload
    precision: str = "float32"

    @cached_property
    def step_seconds(self) -> float:
        """Estimated seconds of one client's local step."""
        batch_size = self.data.source.batch_size
        return estimated_step_seconds(self.objective, self.data.first(4)[0], batch_size)

    @property
    def seconds(self) -> float:
        """Estimated seconds of the run's training in one process."""
        return self.workload.client_steps * self.step_seconds

    def two_steps(self, size: int) -> Job:
        """A job in which ``size`` clients train the full model for two steps."""
        who = np.arange(size) % self.clients
        none = np.zeros(size, dtype=np.int64)
        start = self.objective.spec.from_module(self.objective.module)
        server = {key: value[None] for key, value in self.algorithm.initial(start).items()}
        return Job(
            self.algorithm,
            self.objective.spec,
            self.algorithm.outgoing(server),
            none,
            who,
            none,
            2,
            penalties=self.algorithm.penalties,
        )


def build_executor(
    settings: RunSection, trained: ModelAndData
) -> tuple[Executor, Computing, list[str]]:
    """The executor, its resolved settings, and messages for the user.

    Raises:
        ConfigError: the executor or the number of workers does not suit the model.
    """
    kind, notes = _kind(settings.executor, trained)
    rounded = replace(trained.objective, precision=trained.precision)
    if trained.precision == "bf16" and kind is not StackedExecutor:
        check_rounded(rounded, *trained.data.first(4))
    trained = replace(trained, objective=rounded)
    threads = default_threads(settings)
    device = trained.data.inputs.device
    if device.type == "cpu":
        chunk, workers, replay = _on_cpu(settings, trained, kind, threads)
    else:
        chunk, workers, replay = _on_gpu(settings, trained, kind)
    executor = _make(trained, kind, settings.seed, chunk, replay)
    if workers > 1:
        batches = len(even_parts(trained.workload.cohort, chunk))
        if batches < workers:
            notes.append(
                f"only {batches} of {workers} workers are used, because {trained.workload.cohort} "
                f"clients train in chunks of {chunk}. Choose a smaller --chunk to use all workers."
            )
        executor = WorkersExecutor(executor, workers, threads)
    if isinstance(executor, StackedExecutor):
        executor.meeting = MEETING.get()
    computing = Computing(str(device), kind.name, executor.chunk, replay, workers, threads)
    return executor, computing, notes


def _make(
    trained: ModelAndData, kind: type[Executor], seed: int, chunk: int, replay: bool
) -> Executor:
    objective, data = trained.objective, trained.data
    if kind is LoopExecutor:
        return LoopExecutor(objective, data, chunk, seed=seed)
    if data.inputs.is_cuda:
        assert issubclass(kind, TensorExecutor)
        return kind(objective, data, chunk, recorded=replay)
    if kind is VmapExecutor:
        return VmapExecutor(objective, data, chunk, flat=replay)
    return kind(objective, data, chunk)


def _on_cpu(
    settings: RunSection, trained: ModelAndData, kind: type[Executor], threads: int
) -> tuple[int, int, bool]:
    """Chunk, workers and replay on a CPU.

    Chunks are timed only with ``--chunk tune``. The number of workers depends on the machine, so
    results must not depend on it.
    """
    workload, objective = trained.workload, trained.objective
    steady = trained.fixed_shapes and workload.steady
    pays = steady and trained.seconds > LONG_SECONDS
    replay = pays if settings.replay is None else settings.replay == "on"
    replay = replay and kind is VmapExecutor  # stacked layers do not gain from replay
    make = partial(_make, trained, kind, settings.seed)
    if settings.chunk == "tune":
        per_part = -(-workload.cohort // PARTS)
        sizes = [1] if kind is LoopExecutor else candidates(per_part, objective.spec.size)
        with torch_settings(threads):
            chunk = fastest_chunk(partial(make, replay=replay), trained.two_steps, sizes)
    else:
        batch_size = trained.data.source.batch_size
        chunk = settings.chunk or default_chunk(
            kind, objective, workload.cohort, batch_size, trained.step_seconds
        )
    asked = settings.workers or 1
    if asked == "auto":
        batches = len(even_parts(workload.cohort, chunk))
        workers = min(cores() // threads, batches) if trained.seconds > WORKERS_SECONDS else 1
    else:
        workers = asked
        check_workers(workers, threads, workload.cohort)
    if workers < 2:
        return chunk, 1, replay
    reason = why_no_workers(make(chunk, replay), workers, slot_vectors(trained.algorithm))
    if reason is not None and asked != "auto":
        raise ConfigError(f"workers is {workers}: {reason}. Choose workers 1.")
    return chunk, workers if reason is None else 1, replay


def _on_gpu(
    settings: RunSection, trained: ModelAndData, kind: type[Executor]
) -> tuple[int, int, bool]:
    """Chunk, workers and replay on a GPU, which one process uses."""
    device = trained.data.inputs.device
    if settings.workers not in (None, "auto", 1):
        raise ConfigError(
            f"workers={settings.workers} conflicts with device {device}: workers run on CPUs. "
            "Choose workers 1, or start several processes with torchrun."
        )
    if settings.chunk == "tune":
        raise ConfigError(
            f'chunk="tune" conflicts with device {device}: chunks are timed only on CPUs. Give a '
            "number, or leave chunk out."
        )
    augmented = trained.data.source.augmentation is not None
    if augmented and settings.replay == "on":
        raise ConfigError(
            f'replay="on" conflicts with augment on device {device}: random changes of samples '
            "cannot be recorded there. Leave replay out."
        )
    steady = trained.workload.steady and not augmented
    use_replay = settings.replay or ("on" if steady else "off")
    replay = kind is not LoopExecutor and use_replay == "on"
    chunk = settings.chunk or _gpu_chunk(trained, kind, device)
    return chunk, 1, replay


def _gpu_chunk(trained: ModelAndData, kind: type[Executor], device: torch.device) -> int:
    """Clients that train at once on a GPU: as many as fit into its memory, or one.

    The number depends on the device's total memory, not on its free memory. Under vmap, the
    convolutions of several clients are one with groups, which is slower than one after the other
    if a client alone keeps the device busy.
    """
    if kind is LoopExecutor:
        return 1
    long = trained.step_seconds > LONG_CONVOLUTIONS_SECONDS
    if kind is VmapExecutor and long and has_convolutions(trained.objective):
        return 1
    batch_size = trained.data.source.batch_size
    sample_bytes = estimated_sample_bytes(trained.objective, trained.data.first(4)[0])
    return _fitting(trained.objective.spec.size, batch_size * sample_bytes, device)


def _fitting(parameters: int, batch_bytes: float, device: torch.device) -> int:
    """Clients that fit into GPU memory; a step needs several copies of each model."""
    usable = 0.8 * torch.cuda.get_device_properties(device).total_memory
    return max(min(GPU_CHUNK, int(usable / (16 * 4 * parameters + batch_bytes))), 1)


def _kind(name: str, trained: ModelAndData) -> tuple[type[Executor], list[str]]:
    """The requested executor class, or the fastest one that can train the model.

    Returns:
        The class, and messages for the user.
    """
    objective = trained.objective
    model = type(objective.module).__name__
    x, y = trained.data.first(4)
    alone = check_model(objective, x, y, trained.classes, trained.label_hint)
    features = need_features(trained.penalties)
    if features:
        with torch.no_grad(), torch.random.fork_rng():
            objective.outputs(x, features=True)  # raises if the model has no features
    if name == "loop":
        return LoopExecutor, []
    if name in ("fused", "stacked") and features:
        raise ConfigError(
            f'executor "{name}" cannot compare features of models, which the loss of '
            f'{trained.comparing} requires. Choose "vmap".'
        )
    unstacked = alone or (
        "it has no features" if features else why_not_stacked(objective, trained.data)
    )
    long = trained.seconds > LONG_SECONDS
    paying = name == "auto" and long and has_convolutions(objective)
    if unstacked is None and (paying or name == "fused"):
        fused, unfused = _fused(objective, trained.data, trained.precision)
        if fused is not None:
            return fused, []
        if name == "fused":
            raise ConfigError(
                f'executor "fused" cannot train model {model}: {unfused}. Choose "stacked".'
            )
    if name in ("auto", "stacked") and unstacked is None:
        return StackedExecutor, []
    alone = alone or why_not_vmapped(objective, x, y)
    if alone is not None and name != "auto":
        raise ConfigError(f'executor "{name}" cannot run this model: {alone}. Choose "loop".')
    if name in ("fused", "stacked"):
        raise ConfigError(
            f'executor "{name}" cannot train model {model}: {unstacked}. Choose "vmap".'
        )
    if alone is not None:
        return LoopExecutor, [f"executor loop, one client at a time: {alone}."]
    return VmapExecutor, []


def _fused(
    objective: Objective, data: TrainingData, precision: str
) -> tuple[type[StackedExecutor] | None, str | None]:
    """The executor with compiled layers, or why it cannot train the model."""
    if data.inputs.is_cuda:
        return None, "it trains on CPUs"
    if precision != "float32":
        return None, f'its layers do not have precision "{precision}"'
    try:
        numba()
        from wirelessfl.training.fused import FusedExecutor

        why = why_not_stacked(objective, data, FusedExecutor)
    except Exception as error:  # a compiler may fail in any way
        return None, first_sentence(error)
    return (FusedExecutor, None) if why is None else (None, why)
