"""Local training as a tensor program that is recorded once and replayed on GPUs."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from channels.concurrency import process_state
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.batches import Batches
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.executor import Executor, Job, TrainingData
from wirelessfl.training.objective import Objective
from wirelessfl.training.rules import ClientRule

Tensors = dict[str, Tensor]
Program = Callable[[Tensors], Tensors]
RECORDINGS = 8  # maximum number of stored recordings; each needs the memory of a chunk


class TensorExecutor(Executor):
    """Base class of executors whose H steps are the same tensor operations for every chunk.

    On a GPU the H steps are recorded as a CUDA graph and replayed without Python between steps.

    Args:
        objective: model and loss.
        data: training data.
        chunk: number of clients trained at once.
        recorded: whether to record; None means on GPUs only. On a CPU, a recording runs the program
            on copies of the inputs (for tests).
    """

    def __init__(
        self, objective: Objective, data: TrainingData, chunk: int, *, recorded: bool | None = None
    ) -> None:
        super().__init__(objective, data, chunk)
        self.recorded = data.inputs.is_cuda if recorded is None else recorded
        self._recordings: OrderedDict[object, Any] = OrderedDict()

    @abstractmethod
    def _steps(
        self, rule: ClientRule, spec: ParamSpec, cohort: Cohort, batches: Batches
    ) -> Tensors:
        """Run the local steps by tensor operations only; returns payloads and state by name."""

    def _train(self, job: Job) -> Tensors:
        batches = job.batches(self.data.source).to(self.data.inputs.device)
        cohort = job.cohort()
        self.objective.module.train()
        if not self.recorded:
            return self._steps(job.rule, job.spec, cohort, batches)
        tensors = {f"server.{name}": value for name, value in cohort.server.items()}
        tensors |= {f"kept.{name}": value for name, value in cohort.kept.items()}
        tensors |= {f"factor.{name}": value for name, value in cohort.factors.items()}
        tensors |= {"tracks": cohort.tracks, "fresh": cohort.fresh}
        tensors |= {"index": batches.index, "weight": batches.weight, "keys": batches.keys}
        key = (
            job.rule,
            job.penalties,
            job.local_steps,
            tuple(job.spec.shapes.items()),
            tuple((name, tuple(value.shape)) for name, value in tensors.items()),
        )
        program = partial(self._program, replace(job, servers={}, recall=None, factors={}))
        recording: Recording = self._kept(key, lambda: Recording(program, tensors))
        return recording(tensors)

    def _kept(self, key: object, make: Callable[[], Any]) -> Any:
        """The recording for ``key``, created on first use."""
        recording = self._recordings.pop(key, None)
        if recording is None:
            while len(self._recordings) >= RECORDINGS:
                self._recordings.popitem(last=False)  # the least recently used
            recording = make()
        self._recordings[key] = recording
        return recording

    def _program(self, job: Job, tensors: Tensors) -> Tensors:
        """Run the local steps on ``tensors``, with the rule, spec and penalties of ``job``."""
        server, kept, factors = (
            {n.removeprefix(kind): v for n, v in tensors.items() if n.startswith(kind)}
            for kind in ("server.", "kept.", "factor.")
        )
        batches = Batches(tensors["index"], tensors["weight"], tensors["keys"])
        flags = tensors["tracks"], tensors["fresh"]
        cohort = Cohort(server, job.local_steps, kept, *flags, job.penalties, factors)
        return self._steps(job.rule, job.spec, cohort, batches)

    def close(self) -> None:
        """Release the recordings."""
        self._recordings.clear()


class Recording:
    """A program with inputs and outputs at fixed memory addresses.

    Args:
        program: function whose tensor operations do not depend on tensor values.
        tensors: inputs with the shapes of later calls.
    """

    def __init__(self, program: Program, tensors: Tensors) -> None:
        self._program = program
        self._inputs = {name: value.clone() for name, value in tensors.items()}
        self._graph: torch.cuda.CUDAGraph | None = None
        if next(iter(tensors.values())).is_cuda:
            self._outputs = self._record()

    def _record(self) -> Tensors:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries must be initialised before the recording
            for _ in range(2):
                self._program(self._inputs)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        # One thread records at a time; meanwhile the others may allocate memory and synchronise.
        with process_state, torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            return self._program(self._inputs)

    def __call__(self, tensors: Tensors) -> Tensors:
        """The program's outputs for ``tensors``; they are valid until the next call."""
        for name, buffer in self._inputs.items():
            buffer.copy_(tensors[name])
        if self._graph is None:
            return self._program(self._inputs)
        self._graph.replay()
        return self._outputs
