"""Tensor functions recorded as flat programs, and local training by programs.

Local steps are many and short: on a CPU, modules, autograd and vmap take a quarter to a third of
an MLP's training time. A GPU replays a recorded step without Python.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from channels.arrays import IntArray
from channels.concurrency import process_state
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.batches import Batches
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.executor import Executor, Job, TrainingData
from wirelessfl.training.image_layers import max_pool2d_with_indices
from wirelessfl.training.objective import Objective
from wirelessfl.training.rules import ClientRule
from wirelessfl.training.together import Meeting, Tensors

Function = Callable[..., Any]
aten = torch.ops.aten
# Faster functions for the same operations: overloads parse their arguments as Python objects.
QUICK: dict[Any, Any] = {
    aten.addmm.default: torch.addmm,
    aten.addmm_.default: Tensor.addmm_,
    aten.baddbmm_.default: Tensor.baddbmm_,
    aten.bmm.default: torch.bmm,
    aten.expand.default: Tensor.expand,
    aten.max_pool2d_with_indices.default: max_pool2d_with_indices,
    aten.mm.default: torch.mm,
    aten.mul.Tensor: torch.mul,
    aten.relu.default: torch.relu,
    aten.sub_.Tensor: Tensor.sub_,
    aten.sum.dim_IntList: torch.sum,
    aten.t.default: Tensor.t,
    aten.transpose.int: Tensor.transpose,
    aten.view.default: Tensor.view,
    aten.add.Tensor: torch.add,
    aten.where.self: torch.where,
    aten._unsafe_view.default: Tensor.view,
}
UNRECORDABLE = (
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
    torch.Tag.nondeterministic_seeded,
)


class NotRecordableError(Exception):
    """A function cannot be recorded, e.g. because its operations depend on tensor values."""


class _Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the operations on tensors, below autograd and vmap."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = fx.Graph()
        self.root = torch.nn.Module()
        self.nodes: dict[int, fx.Node] = {}
        self.alive: list[Tensor] = []  # keeps tensors alive, so that ids and memory stay unique
        self.given = {_storage(tensor) for tensor in inputs}
        for i, tensor in enumerate(inputs):
            self._register(tensor, self.graph.placeholder(f"input{i}"))

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would make torch import its compiler, which takes a second

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if any(tag in func.tags for tag in UNRECORDABLE) and not _recordable(func, args):
            raise NotRecordableError(f"{func} depends on tensor values or draws random numbers")
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        node = self.graph.call_function(func, *tree_map(self._node, (tuple(args), kwargs)))
        if isinstance(out, Tensor):
            self._register(out, node)
        else:
            for i, part in enumerate(out or ()):
                if isinstance(part, Tensor):
                    self._register(part, self.graph.call_function(_item, (node, i)))
        return out

    def _register(self, tensor: Tensor, node: fx.Node) -> None:
        node.meta |= {"shape": tensor.shape, "dtype": tensor.dtype, "memory": _storage(tensor)}
        self.nodes[id(tensor)] = node
        self.alive.append(tensor)

    def _node(self, thing: Any) -> Any:
        if not isinstance(thing, Tensor):
            return thing
        if id(thing) not in self.nodes:  # a constant: frozen parameters, buffers
            if _storage(thing) in self.given:
                raise NotRecordableError("the function reads an input other than as an argument")
            name = f"constant{len(self.alive)}"
            self.root.register_buffer(name, thing.detach(), persistent=False)
            self._register(thing, self.graph.get_attr(name))
        return self.nodes[id(thing)]

    def end(self, results: Sequence[Tensor]) -> fx.GraphModule:
        """The recorded module, which returns ``results``."""
        self.graph.output([self._node(result) for result in results])
        return fx.GraphModule(self.root, self.graph)


def _recordable(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether a tagged operation is independent of values and randomness for these arguments."""
    if func is aten.index.Tensor:
        masks = (torch.bool, torch.uint8)
        return not any(isinstance(i, Tensor) and i.dtype in masks for i in args[1])
    if func is aten._scaled_dot_product_flash_attention_for_cpu.default:
        return len(args) < 4 or args[3] == 0.0  # dropout_p
    return False


def _storage(tensor: Tensor) -> int:
    """Address of a tensor's storage, equal for views of the same memory."""
    return tensor.untyped_storage().data_ptr()


def _item(tensors: Sequence[Tensor], i: int) -> Tensor:
    return tensors[i]


def tape_of(function: Function, inputs: Sequence[Tensor]) -> fx.GraphModule:
    """Record ``function`` as a graph; each node's meta has ``shape``, ``dtype`` and ``memory``."""
    # Each input gets its own memory, so views of different inputs are distinguished.
    copies = [
        torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in inputs
    ]
    for copy, tensor in zip(copies, inputs, strict=True):
        copy.copy_(tensor)
    with _Tape(copies) as tape:
        results = function(*copies)
    module: fx.GraphModule = tape.end(results)
    constants = {memory_of(node) for node in module.graph.nodes if node.op == "get_attr"}
    if any(constants & set(written_by(node)) for node in module.graph.nodes):
        raise NotRecordableError("the function writes into a constant, which would be permanent")
    return module


def record(function: Function, inputs: Sequence[Tensor]) -> Function:
    """Record the tensor operations of ``function`` in order.

    Args:
        function: function of tensors that returns a list of tensors. It runs once, on copies.
        inputs: tensors with the shapes and strides of later calls.

    Raises:
        NotRecordableError: the function draws random numbers or depends on tensor values.
    """
    return compiled(tape_of(function, inputs))


def compiled(module: fx.GraphModule) -> Function:
    """Compile the graph of ``module`` to a function."""
    for node in module.graph.nodes:
        node.target = QUICK.get(node.target, node.target)
    module.graph.lint()
    module.recompile()
    program: Function = module.forward  # avoids the overhead of calling a module
    return program


def written_by(node: fx.Node) -> list[int]:
    """Storage ids that an operation writes to; new tensors are not included."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
        return []
    written: list[int] = []
    for i, argument in enumerate(node.target._schema.arguments):
        value = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
        if argument.is_write:  # a tensor, or a list of them
            tensors = value if isinstance(value, list | tuple) else [value]
            written += [memory_of(tensor) for tensor in tensors if isinstance(tensor, fx.Node)]
    return written


def memory_of(node: fx.Node) -> int:
    """Storage id of a node's tensor; 0 for non-tensors."""
    memory: int = node.meta.get("memory", 0)
    return memory


Program = Callable[[Tensors], Tensors]
MERGED_BYTES = 4 << 20  # parameters of jobs that train as one on a CPU, whose cache is small
RECORDINGS = 8  # maximum number of stored recordings; each needs the memory of a chunk


class TensorExecutor(Executor):
    """Base class of executors whose H steps are the same tensor operations for every chunk.

    On a GPU the H steps are recorded as a CUDA graph and replayed without Python between steps.

    Args:
        chunk: number of clients trained at once.
        recorded: whether to record; None means on GPUs only. On a CPU, a recording runs the program
            on copies of the inputs (for tests).
    """

    def __init__(
        self, objective: Objective, data: TrainingData, chunk: int, *, recorded: bool | None = None
    ) -> None:
        super().__init__(objective, data, chunk)
        self.recorded = data.inputs.is_cuda if recorded is None else recorded
        self.meeting: Meeting | None = None
        """Where its jobs train with those of other runs."""
        self._recordings: OrderedDict[object, Any] = OrderedDict()
        self._last: IntArray | None = None
        self._ahead: tuple[Job, Batches] | None = None

    @abstractmethod
    def _steps(
        self, rule: ClientRule, spec: ParamSpec, cohort: Cohort, batches: Batches
    ) -> Tensors:
        """Run the local steps by tensor operations only; returns payloads and state by name."""

    def _train(self, job: Job) -> Tensors:
        batches = self._drawn(job)
        cohort = job.cohort()
        self.objective.module.train()
        if not self.recorded and self.meeting is None:
            return self._steps(job.rule, job.spec, cohort, batches)
        tensors = {f"server.{name}": value for name, value in cohort.server.items()}
        tensors |= {f"kept.{name}": value for name, value in cohort.kept.items()}
        tensors |= {f"factor.{name}": value for name, value in cohort.factors.items()}
        tensors |= {"tracks": cohort.tracks, "fresh": cohort.fresh}
        tensors |= {"index": batches.index, "weight": batches.weight, "keys": batches.keys}
        bare = replace(job, servers={}, recall=None, factors={})
        if self.meeting is None:
            results = self._recorded(bare, tensors)
        else:
            most = self.chunk if self.recorded else MERGED_BYTES // (4 * job.spec.size)
            train = partial(self._recorded if self.recorded else self._program, bare)
            results = self.meeting.train(_key(job, tensors), tensors, train, most)
        if self.recorded:
            self._draw_ahead(job)
        return results

    def _recorded(self, job: Job, tensors: Tensors) -> Tensors:
        """Results by the recording for jobs of this kind, which is made if there is none."""
        program = partial(self._program, job)
        recording: Recording = self._kept(_key(job, tensors), lambda: Recording(program, tensors))
        return recording(tensors)

    def _drawn(self, job: Job) -> Batches:
        """The batches of a job on the device, which may have been drawn ahead."""
        if self._ahead is not None:
            (expected, batches), self._ahead = self._ahead, None
            same = np.array_equal(expected.clients, job.clients)
            same = same and np.array_equal(expected.first_steps, job.first_steps)
            if same and expected.local_steps == job.local_steps:
                return batches
        return job.batches(self.data.source).to(self.data.inputs.device)

    def _draw_ahead(self, job: Job) -> None:
        """Draw the clients' next batches while the GPU works, if the same ones train every time."""
        again = self._last is not None and np.array_equal(self._last, job.clients)
        self._last = job.clients
        if again:
            following = replace(job, first_steps=job.first_steps + job.local_steps)
            bare = replace(following, servers={}, recall=None, factors={})
            self._ahead = bare, self._drawn(bare)

    def _kept(self, key: object, make: Callable[[], Any]) -> Any:
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
        self._last = self._ahead = None


def _key(job: Job, tensors: Tensors) -> tuple[object, ...]:
    """What jobs that train by the same operations have in common."""
    return (
        job.rule,
        job.penalties,
        job.local_steps,
        tuple(job.spec.shapes.items()),
        tuple((name, tuple(value.shape)) for name, value in tensors.items()),
    )


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
