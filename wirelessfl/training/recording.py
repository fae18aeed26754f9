"""A function of tensors as a flat program: run once, then replayed without what called it.

Local steps are many and small: of an MLP's on a CPU, modules, autograd and vmap take a quarter to
a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

Program = Callable[..., Any]
aten = torch.ops.aten
# The same operations by a shorter way: torch parses the arguments of an overload in Python objects.
QUICK: dict[Any, Any] = {
    aten.addmm.default: torch.addmm,
    aten.addmm_.default: Tensor.addmm_,
    aten.baddbmm_.default: Tensor.baddbmm_,
    aten.bmm.default: torch.bmm,
    aten.expand.default: Tensor.expand,
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
UNFIT = (
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
    torch.Tag.nondeterministic_seeded,
)


class NotRecordableError(Exception):
    """A function that is not the same tensor operations for all inputs of a shape."""


class _Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down the operations that tensors go through, below autograd and vmap."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = fx.Graph()
        self.root = torch.nn.Module()
        self.nodes: dict[int, fx.Node] = {}
        self.alive: list[Tensor] = []  # so that neither ids nor memory are used twice
        self.given = {_storage(tensor) for tensor in inputs}
        for place, tensor in enumerate(inputs):
            self._know(tensor, self.graph.placeholder(f"input{place}"))

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch would first have to import it, for a second

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if any(tag in func.tags for tag in UNFIT) and not _fit_after_all(func, args):
            raise NotRecordableError(f"{func} depends on the data, or draws")
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        node = self.graph.call_function(func, *tree_map(self._node, (tuple(args), kwargs)))
        if isinstance(out, Tensor):
            self._know(out, node)
        else:
            for place, part in enumerate(out or ()):
                if isinstance(part, Tensor):
                    self._know(part, self.graph.call_function(_take, (node, place)))
        return out

    def _know(self, tensor: Tensor, node: fx.Node) -> None:
        node.meta |= {"shape": tensor.shape, "dtype": tensor.dtype, "memory": _storage(tensor)}
        self.nodes[id(tensor)] = node
        self.alive.append(tensor)

    def _node(self, thing: Any) -> Any:
        if not isinstance(thing, Tensor):
            return thing
        if id(thing) not in self.nodes:  # a constant: frozen parameters, buffers
            if _storage(thing) in self.given:
                raise NotRecordableError("an input comes in by another way")
            name = f"constant{len(self.alive)}"
            self.root.register_buffer(name, thing.detach(), persistent=False)
            self._know(thing, self.graph.get_attr(name))
        return self.nodes[id(thing)]

    def end(self, results: Sequence[Tensor]) -> fx.GraphModule:
        """What is written down, giving ``results``."""
        self.graph.output([self._node(result) for result in results])
        return fx.GraphModule(self.root, self.graph)


def _fit_after_all(func: Any, args: tuple[Any, ...]) -> bool:
    """Operations that depend on the data, or draw, only with some arguments."""
    if func is aten.index.Tensor:
        masks = (torch.bool, torch.uint8)
        return not any(isinstance(i, Tensor) and i.dtype in masks for i in args[1])
    if func is aten._scaled_dot_product_flash_attention_for_cpu.default:
        return len(args) < 4 or args[3] == 0.0  # dropout_p
    return False


def _storage(tensor: Tensor) -> int:
    """What views of the same memory have in common."""
    return tensor.untyped_storage().data_ptr()


def _take(things: Sequence[Tensor], place: int) -> Tensor:
    return things[place]


def tape_of(function: Program, inputs: Sequence[Tensor]) -> fx.GraphModule:
    """As ``record``, still open to changes: nodes know shape, dtype and memory of their tensors."""
    # Each in memory of its own, so that views of one are told from views of another.
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
        raise NotRecordableError("it writes into a constant, which would stay changed")
    return module


def record(function: Program, inputs: Sequence[Tensor]) -> Program:
    """The tensor operations of ``function``, in their order.

    Args:
        function: of tensors, to a list of tensors. It runs once, on copies.
        inputs: of the shapes and strides that it will be called with.

    Raises:
        NotRecordableError: it draws random numbers, or looks into tensors.
    """
    return compiled(tape_of(function, inputs))


def compiled(module: fx.GraphModule) -> Program:
    """The graph of ``module`` as a function."""
    for node in module.graph.nodes:
        node.target = QUICK.get(node.target, node.target)
    module.graph.lint()
    module.recompile()
    program: Program = module.forward  # what a module's call does around it takes time too
    return program


def written_by(node: fx.Node) -> list[int]:
    """The memories that an operation writes, but for those that it makes."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
        return []
    written: list[int] = []
    for place, argument in enumerate(node.target._schema.arguments):
        given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.is_write:  # a tensor, or a list of them
            tensors = given if isinstance(given, list | tuple) else [given]
            written += [memory_of(tensor) for tensor in tensors if isinstance(tensor, fx.Node)]
    return written


def memory_of(node: fx.Node) -> int:
    """Of a tensor; 0 for what is none."""
    memory: int = node.meta.get("memory", 0)
    return memory
