"""A function of tensors as a flat program: run once, then replayed without what called it.

Local steps are many and small: on a CPU modules, autograd and vmap take a third of their time.
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
SAME_DATA = (
    aten.view.default,
    aten._unsafe_view.default,
    aten.expand.default,
    aten.alias.default,
    aten.detach.default,
)
TRANSPOSES = (aten.t.default, aten.transpose.int)
PRODUCTS = {aten.mm.default: aten.addmm_.default, aten.bmm.default: aten.baddbmm_.default}
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
        self.given = {_memory(tensor) for tensor in inputs}
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
        node.meta |= {"shape": tensor.shape, "dtype": tensor.dtype, "memory": _memory(tensor)}
        self.nodes[id(tensor)] = node
        self.alive.append(tensor)

    def _node(self, thing: Any) -> Any:
        if not isinstance(thing, Tensor):
            return thing
        if id(thing) not in self.nodes:  # a constant: frozen parameters, buffers
            if _memory(thing) in self.given:
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


def _memory(tensor: Tensor) -> int:
    """What views of the same memory have in common."""
    return tensor.untyped_storage().data_ptr()


def _take(things: Sequence[Tensor], place: int) -> Tensor:
    return things[place]


def _record(function: Program, inputs: Sequence[Tensor]) -> fx.GraphModule:
    # Each in memory of its own, so that views of one are told from views of another.
    own = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in inputs]
    for copy, tensor in zip(own, inputs, strict=True):
        copy.copy_(tensor)
    with _Tape(own) as tape:
        results = function(*own)
    module: fx.GraphModule = tape.end(results)
    constants = {_memory_of(node) for node in module.graph.nodes if node.op == "get_attr"}
    if any(constants & set(_written(node)) for node in module.graph.nodes):
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
    return _compiled(_record(function, inputs))


def record_descent(
    gradients: Program, inputs: Sequence[Tensor], parameters: int, lr: float
) -> Program:
    """A step of plain SGD, in place: updates within the products that give weights' gradients.

    Args:
        gradients: of tensors, the parameters first, to a list of the parameters' gradients. It
            runs once, on copies.
        inputs: of the shapes and strides that it will be called with.
        parameters: how many of the inputs are such.
        lr: step size.

    Raises:
        NotRecordableError: it draws random numbers, or looks into tensors.
    """
    module = _record(gradients, inputs)
    graph = module.graph
    _simplify(graph)
    nodes = list(graph.nodes)
    descent = _Descent(graph, nodes[:parameters], lr)
    for parameter, gradient in zip(nodes, nodes[-1].args[0], strict=False):
        descent.update(parameter, gradient)
    nodes[-1].args = ([],)
    graph.eliminate_dead_code(is_impure_node=_stays)
    return _compiled(module)


def _compiled(module: fx.GraphModule) -> Program:
    for node in module.graph.nodes:
        node.target = QUICK.get(node.target, node.target)
    module.graph.lint()
    module.recompile()
    program: Program = module.forward  # what a module's call does around it takes time too
    return program


def _stays(node: fx.Node) -> bool:
    return node.op in ("placeholder", "output") or bool(_written(node))


def _written(node: fx.Node) -> list[int]:
    """The memories that an operation writes, but for those that it makes."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
        return []
    written: list[int] = []
    for place, argument in enumerate(node.target._schema.arguments):
        given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.is_write:  # a tensor, or a list of them
            tensors = given if isinstance(given, list | tuple) else [given]
            written += [_memory_of(tensor) for tensor in tensors if isinstance(tensor, fx.Node)]
    return written


def _simplify(graph: fx.Graph) -> None:
    """Take out what changes nothing: views of equal shape, transposes of transposes."""
    for node in list(graph.nodes):
        if node.op != "call_function" or not node.args or not isinstance(node.args[0], fx.Node):
            continue
        source = node.args[0]
        if node.target in SAME_DATA and node.meta["shape"] == source.meta["shape"]:
            node.replace_all_uses_with(source)
        elif _swaps(node) and _swaps(source):
            node.replace_all_uses_with(source.all_input_nodes[0])
    graph.eliminate_dead_code(is_impure_node=_stays)


def _swaps(node: fx.Node) -> bool:
    """Whether a node swaps the last two dimensions: of a matrix, or of several."""
    dims = len(node.meta.get("shape", ()))
    if node.op != "call_function" or node.target not in TRANSPOSES or dims < 2:
        return False
    if node.target is aten.t.default:
        return True
    return sorted(int(dim) % dims for dim in node.args[1:]) == [dims - 2, dims - 1]  # type: ignore[arg-type]


class _Descent:
    """Puts updates into a graph, each behind the last use of the parameter and of what it needs."""

    def __init__(self, graph: fx.Graph, parameters: Sequence[fx.Node], lr: float) -> None:
        self.graph, self.lr = graph, lr
        self.order = {node: place for place, node in enumerate(graph.nodes)}
        self.memory = {_memory_of(node) for node in parameters}
        self.last_use: dict[int, fx.Node] = {}
        self.last_write: dict[int, fx.Node] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                self.first = node
            elif node.op == "call_function":
                for memory in (_memory_of(node), *map(_memory_of, node.all_input_nodes)):
                    self.last_use[memory] = node
                for memory in _written(node):
                    self.last_write[memory] = node
        if self.memory & self.last_write.keys():
            raise NotRecordableError("the model writes into its parameters")

    def update(self, parameter: fx.Node, gradient: fx.Node) -> None:
        """Write ``parameter - lr * gradient`` into the parameter."""
        swapped = _swaps(gradient)
        product = gradient.all_input_nodes[0] if swapped else gradient
        if self._can_fuse(product) and product.meta["dtype"] == parameter.meta["dtype"]:
            self._fused(parameter, product, swapped=swapped)
            return
        if _memory_of(gradient) in self.memory:
            raise NotRecordableError("a gradient is a parameter")
        with self.graph.inserting_after(self._behind(parameter, gradient)):
            self.graph.call_function(aten.sub_.Tensor, (parameter, gradient), {"alpha": self.lr})

    def _can_fuse(self, product: fx.Node) -> bool:
        """Whether it is a product, and nobody writes into it or its factors afterwards."""
        if product.target not in PRODUCTS:
            return False
        factors = {_memory_of(factor) for factor in product.all_input_nodes}
        watched = self.last_write.keys() & {*factors, _memory_of(product)}
        written = [self.order[self.last_write[memory]] for memory in watched]
        return max(written, default=-1) < self.order[product] and not self.memory & factors

    def _fused(self, parameter: fx.Node, product: fx.Node, *, swapped: bool) -> None:
        """With (A B)^T = B^T A^T where the gradient is the transpose of the product."""
        factors = [factor for factor in product.args if isinstance(factor, fx.Node)]
        place = self._behind(parameter, product)
        if swapped:
            for i, factor in enumerate(reversed(tuple(factors))):
                if _swaps(factor):
                    factors[i] = factor.all_input_nodes[0]
                    continue
                with self.graph.inserting_after(place):
                    swap = (factor, -2, -1)
                    factors[i] = place = self.graph.call_function(aten.transpose.int, swap)
        with self.graph.inserting_after(place):
            self.graph.call_function(
                PRODUCTS[product.target],  # type: ignore[index]
                (parameter, *factors),
                {"beta": 1, "alpha": -self.lr},
            )

    def _behind(self, *needed: fx.Node) -> fx.Node:
        """The last node that uses what is ``needed``."""
        uses = [self.last_use.get(_memory_of(node), node) for node in needed]
        last: fx.Node = max((*uses, self.first), key=lambda node: self.order[node])
        return last


def _memory_of(node: fx.Node) -> int:
    """Of a tensor; 0 for what is none."""
    memory: int = node.meta.get("memory", 0)
    return memory
