"""Recorded steps of plain SGD, with updates fused into the products that compute gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, fx

from wirelessfl.training.recording import Function as Program
from wirelessfl.training.recording import (
    NotRecordableError,
    compiled,
    memory_of,
    tape_of,
    written_by,
)

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


def record_descent(
    gradients: Program, inputs: Sequence[Tensor], parameters: int, lr: float
) -> Program:
    """Record an in-place step of plain SGD, fusing updates into the matrix products of gradients.

    Args:
        gradients: function of tensors, the parameters first, that returns a list of the parameters'
            gradients. It runs once, on copies.
        inputs: tensors with the shapes and strides of later calls.
        parameters: number of inputs that are parameters.
        lr: step size.

    Raises:
        NotRecordableError: ``gradients`` draws random numbers or depends on tensor values.
    """
    module = tape_of(gradients, inputs)
    graph = module.graph
    _simplify(graph)
    nodes = list(graph.nodes)
    leaves, output = nodes[:parameters], nodes[-1]
    descent = _Descent(graph, leaves, lr)
    for parameter, gradient in zip(leaves, output.args[0], strict=True):
        descent.update(parameter, gradient)
    output.args = ([],)
    graph.eliminate_dead_code(is_impure_node=_stays)
    return compiled(module)


def _stays(node: fx.Node) -> bool:
    return node.op in ("placeholder", "output") or bool(written_by(node))


def _simplify(graph: fx.Graph) -> None:
    """Remove operations without effect: views of equal shape, transposes of transposes."""
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
    """Whether a node swaps the last two dimensions of a matrix or a batch of matrices."""
    dims = len(node.meta.get("shape", ()))
    if node.op != "call_function" or node.target not in TRANSPOSES or dims < 2:
        return False
    if node.target is aten.t.default:
        return True
    return sorted(int(dim) % dims for dim in node.args[1:]) == [dims - 2, dims - 1]  # type: ignore[arg-type]


class _Descent:
    """Inserts updates into a graph, each after the last use of the parameter and its gradient."""

    def __init__(self, graph: fx.Graph, parameters: Sequence[fx.Node], lr: float) -> None:
        self.graph, self.lr = graph, lr
        self.order = {node: position for position, node in enumerate(graph.nodes)}
        self.memory = {memory_of(node) for node in parameters}
        self.last_use: dict[int, fx.Node] = {}
        self.last_write: dict[int, fx.Node] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                self.first = node
            elif node.op == "call_function":
                for memory in (memory_of(node), *map(memory_of, node.all_input_nodes)):
                    self.last_use[memory] = node
                for memory in written_by(node):
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
        if memory_of(gradient) in self.memory:
            raise NotRecordableError("a gradient is a parameter")
        with self.graph.inserting_after(self._last_user(parameter, gradient)):
            self.graph.call_function(aten.sub_.Tensor, (parameter, gradient), {"alpha": self.lr})

    def _can_fuse(self, product: fx.Node) -> bool:
        """Whether the node is a matrix product that can be fused into an update.

        No factor may be a parameter, and neither the product nor its factors may be overwritten
        later.
        """
        if product.target not in PRODUCTS:
            return False
        factors = {memory_of(factor) for factor in product.all_input_nodes}
        watched = self.last_write.keys() & {*factors, memory_of(product)}
        written = [self.order[self.last_write[memory]] for memory in watched]
        return max(written, default=-1) < self.order[product] and not self.memory & factors

    def _fused(self, parameter: fx.Node, product: fx.Node, *, swapped: bool) -> None:
        """Insert a fused update; if the gradient is transposed, it uses (A B)^T = B^T A^T."""
        factors = [factor for factor in product.args if isinstance(factor, fx.Node)]
        last = self._last_user(parameter, product)
        if swapped:
            for i, factor in enumerate(reversed(tuple(factors))):
                if _swaps(factor):
                    factors[i] = factor.all_input_nodes[0]
                    continue
                with self.graph.inserting_after(last):
                    swap = (factor, -2, -1)
                    factors[i] = last = self.graph.call_function(aten.transpose.int, swap)
        with self.graph.inserting_after(last):
            self.graph.call_function(
                PRODUCTS[product.target],  # type: ignore[index]
                (parameter, *factors),
                {"beta": 1, "alpha": -self.lr},
            )

    def _last_user(self, *needed: fx.Node) -> fx.Node:
        """The last node that uses the memory of any node in ``needed``."""
        uses = [self.last_use.get(memory_of(node), node) for node in needed]
        last: fx.Node = max((*uses, self.first), key=lambda node: self.order[node])
        return last
