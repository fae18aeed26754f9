"""Tracks the neurons of a traced model through its operations, on a few samples.

Every intermediate result has a group of neurons along one of its axes, or no group if it depends
only on the model's inputs. Linear layers and convolutions read a group and start a new one, sums
join two groups, and operations on individual neurons preserve the group. All neurons of the output
(the logits) must be kept, and all neurons of a group that is summed with inputs. Any other
operation makes the group's neurons irremovable.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels.neurons import Group, NeuronFinder
from wirelessfl.models.submodels.operations import (
    POINTWISE,
    RESHAPES,
    axis_after,
    fixes_width,
    keeps_channels,
    plain_name,
)

PRODUCERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
NO_NEURONS = (nn.Embedding, nn.EmbeddingBag, nn.LayerNorm)  # with weights, without hidden neurons


@dataclass(frozen=True)
class _Lane:
    """A result with neurons along one axis of ``shape``, ``repeat`` entries per neuron."""

    group: Group
    shape: tuple[int, ...]
    repeat: int = 1
    axis: int = 1


class NeuronTracker(fx.Interpreter):
    """Runs the traced model on samples and tracks its neurons.

    Args:
        finder: finder of the traced module, which records the neurons.
        graph: traced graph of the module.
        uses: counter to fill: by parameter, multiplications per sample with each entry.
        opaque: names of modules whose operations are unknown.
    """

    def __init__(
        self,
        finder: NeuronFinder,
        graph: fx.Graph,
        uses: Counter[str],
        opaque: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(finder.module, graph=graph)
        self.extra_traceback = False  # keep errors to one line
        self.finder, self.uses, self.opaque = finder, uses, opaque
        self._lanes: dict[fx.Node, _Lane] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run ``n`` and record the neurons of its result."""
        try:
            value = super().run_node(n)
        except Exception as error:
            name = type(self.finder.module).__name__
            raise ConfigError(
                f"model {name} does not run on the samples: {n.name!r} fails "
                f"({first_sentence(error)}). Choose a data set that fits the model."
            ) from error
        lanes = [self._lanes[source] for source in n.all_input_nodes if source in self._lanes]
        if n.op == "output":
            for lane in lanes:
                lane.group.root.whole = True
            return value
        if n.op == "get_attr" and isinstance(value, nn.Parameter):
            self.finder.used(value)
        shape = tuple(value.shape) if isinstance(value, Tensor) else ()
        result: _Lane | None = None  # None if the result depends on inputs and numbers only
        if n.op == "call_module":
            result = self._through_layer(n, self.fetch_attr(str(n.target)), lanes, shape)
        elif lanes and not isinstance(value, int | torch.Size | torch.dtype | torch.device):
            result = self._through_operation(n, plain_name(n, None), lanes, shape)
        if result is not None:
            self._lanes[n] = result
        return value

    def _through_layer(
        self, node: fx.Node, layer: nn.Module, lanes: Sequence[_Lane], shape: tuple[int, ...]
    ) -> _Lane | None:
        name, kind = str(node.target), type(layer)  # exact type: a subclass may behave differently
        for parameter in layer.parameters():
            self.finder.used(parameter)
        if name in self.opaque:
            new = _Lane(self.finder.begin(name, 0), shape)
            return _refuse([*lanes, new], f"{name!r} cannot be traced")
        if kind in PRODUCERS:
            return self._produce(name, layer, lanes, shape)
        if not lanes:
            if kind in NO_NEURONS or all(p.ndim < 2 for p in layer.parameters()):
                return None
            new = _Lane(self.finder.begin(name, 0), shape)  # recurrent layers, attention
            return _refuse([new], f"{name!r} is of type {kind.__name__}")
        if kind is nn.GroupNorm or kind in BATCH_NORMS:
            return self._normalise(name, layer, lanes[0], shape)
        return self._through_operation(node, plain_name(node, layer), lanes, shape)

    def _produce(
        self, name: str, layer: nn.Module, lanes: Sequence[_Lane], shape: tuple[int, ...]
    ) -> _Lane:
        weight, groups = layer.get_parameter("weight"), getattr(layer, "groups", 1)
        axis = len(shape) - 1 if isinstance(layer, nn.Linear) else 1
        new = _Lane(self.finder.begin(name, len(weight)), shape, axis=axis)
        # Neurons that are kept anyway may lie along any axis.
        readable = [lane for lane in lanes if not lane.group.root.refusal]
        wrong = len(shape) < 2 if isinstance(layer, nn.Linear) else len(shape) != weight.ndim
        if wrong or any(lane.axis != axis for lane in readable):
            return _refuse([new, *lanes], f"{name!r} acts on only one of {len(shape)} axes")
        if groups != 1:
            return _refuse([new, *lanes], f"{name!r} is a convolution with {groups} groups")
        if f"{name}.weight" in self.finder.spec.shapes:
            self.uses[f"{name}.weight"] += math.prod(shape[1:]) // shape[axis]
        for lane in readable:
            lane.group.read_by(name, lane.repeat)
        new.group.held_by(name, layer)
        return new

    def _normalise(self, name: str, layer: nn.Module, lane: _Lane, shape: tuple[int, ...]) -> _Lane:
        group = lane.group.root
        if lane.axis != 1:
            return _refuse([lane], f"{name!r} normalises over another axis than that of neurons")
        if not isinstance(layer, nn.GroupNorm):
            if layer.running_mean is not None:
                return _refuse([lane], f"{name!r} keeps running statistics")
        elif lane.repeat > 1:
            return _refuse([lane], f"{name!r} is a GroupNorm of flattened channels")
        else:
            group.blocks = math.lcm(group.blocks, layer.num_groups)
        group.held_by(name, layer, lane.repeat)
        return _Lane(group, shape, lane.repeat)

    def _through_operation(
        self, node: fx.Node, kind: str, lanes: Sequence[_Lane], shape: tuple[int, ...]
    ) -> _Lane:
        lane, before = lanes[0], lanes[0].shape
        if any(operand.group.root.refusal for operand in lanes):
            return _refuse(lanes, "")  # the axes of its neurons are unknown
        if kind in POINTWISE and all(_alike(operand, lane, shape) for operand in lanes):
            return self._join(node, lanes, shape)
        if lane.axis == 1 and keeps_channels(node, kind, before) and shape[:2] == before[:2]:
            return _Lane(lane.group, shape, lane.repeat)
        axis = axis_after(node, kind, before, lane.axis)
        if axis is not None and len(lanes) == 1:
            return _Lane(lane.group, shape, lane.repeat, axis)
        if lane.axis == 1 and kind in RESHAPES and shape[:1] == before[:1]:
            if fixes_width(node, kind, before):
                return _refuse(lanes, f"{node.name!r} fixes their number (use flatten(1))")
            if shape[:2] == before[:2]:
                return _Lane(lane.group, shape, lane.repeat)
            if len(shape) == 2:
                return _Lane(lane.group, shape, lane.repeat * shape[1] // before[1])
        if node.op == "call_module":
            layer = self.fetch_attr(str(node.target))
            return _refuse(lanes, f"{node.target!r} is of type {type(layer).__name__}")
        return _refuse(lanes, f"operation {node.name!r} does not act on each neuron separately")

    def _join(self, node: fx.Node, lanes: Sequence[_Lane], shape: tuple[int, ...]) -> _Lane:
        """Join the operands' neurons, which correspond one to one."""
        group = lanes[0].group
        for lane in lanes:
            group.join(lane.group)
        for source in node.all_input_nodes:
            operand = self.env[source]
            if source in self._lanes or not isinstance(operand, Tensor) or operand.numel() == 1:
                continue
            if source.op == "get_attr":
                return _refuse(lanes, f"{source.target!r} would have to be sliced as well")
            group.root.whole = True  # the other operand depends on inputs, which are all kept
        return _Lane(group, shape, lanes[0].repeat, lanes[0].axis)


def _refuse(lanes: Sequence[_Lane], why: str) -> _Lane:
    """Join the neurons of ``lanes``, which an operation mixes, and mark them irremovable."""
    group = lanes[0].group
    for lane in lanes:
        group.join(lane.group)
    group.root.refusal = group.root.refusal or why
    return _Lane(group, lanes[0].shape)


def _alike(operand: _Lane, first: _Lane, shape: tuple[int, ...]) -> bool:
    """Whether the neurons of two operands correspond one to one in a result of ``shape``."""
    axis = first.axis
    same_axis = (
        len(operand.shape) == len(shape)
        and operand.axis == axis
        and operand.shape[axis] == shape[axis]
    )
    return same_axis and operand.repeat == first.repeat


def first_sentence(error: Exception) -> str:
    """The first sentence of an error message without its full stop; the type of an empty error."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]
    return first.removesuffix(".")
