"""Which hidden neurons of a model can be left out, found by tracing it and running a few samples.

Every result on the way carries the group of neurons that lie along its axis 1, or none: the model's
inputs. Linear layers and convolutions read a group and begin a new one, sums join two, and what
acts on each neuron alone passes them on. The group that reaches the output, the logits, stays
whole, and so does one that is summed with inputs. Anything else on a group is refused at the end,
unless the group stays whole anyway (a softmax behind the logits).
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn

from wirelessfl.errors import ConfigError
from wirelessfl.submodels.flat import ParamSpec
from wirelessfl.submodels.neurons import NeuronMap, Neurons, Slot
from wirelessfl.submodels.operations import (
    POINTWISE,
    RESHAPES,
    Tracer,
    keeps_channels,
    names_width,
    plain_name,
)

PRODUCERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
NO_NEURONS = (nn.Embedding, nn.EmbeddingBag, nn.LayerNorm)  # have weights, yet no hidden neurons
REMEDY = (
    "Choose mlp, fcnn, lenet5, cifar-cnn, fedast-cnn or resnet18, or a model of linear layers, "
    "convolutions, norms and activations."
)


def find_neurons(module: nn.Module, spec: ParamSpec, sample: Tensor) -> NeuronMap:
    """The hidden neurons and channels of ``module`` that a submodel may leave out.

    Args:
        module: of linear layers, convolutions without groups, group norms, batch norms without
            running statistics, activations, pooling, flattening and sums. It stays as it is.
        spec: its parameters.
        sample: [batch, ...], a few inputs, on the module's device; its values do not matter.

    Returns:
        The neurons, in the order in which they are computed. Not in it: logits, channels that are
        summed with the inputs, and layers of a single neuron in each group of a group norm.

    Raises:
        ConfigError: the model cannot be traced or run, does something with hidden neurons that
            needs all of them, or has none.
    """
    name = type(module).__name__
    devices = [sample.device] if sample.is_cuda else []
    with torch.random.fork_rng(devices), torch.no_grad():
        tracer = Tracer()
        try:
            own = copy.deepcopy(module).eval()  # its forward may write to the module
            graph = tracer.trace(own)
        except Exception as error:  # whatever a user's forward raises when it is traced
            where = f", layer {tracer.failed!r}," if tracer.failed else ""
            raise ConfigError(
                f"model {name}{where} cannot be traced to find its neurons ({_line(error)}). "
                f"{REMEDY}"
            ) from error
        finder = _Finder(name, own, graph, spec)
        finder.run(sample.clone())  # the forward may work in place
    groups = [group for group in finder.groups if group.joined is None and not group.whole]
    for group in groups:
        why = group.refusal or finder.not_own(group.slots)
        if why:
            raise ConfigError(
                f"model {name}: neurons of layer {group.name!r} cannot be left out, because {why}. "
                f"{REMEDY}"
            )
    layers = tuple(
        Neurons(group.name, group.width, tuple(group.slots), group.blocks)
        for group in groups
        if group.blocks < group.width
    )
    if not layers:
        raise ConfigError(f"model {name} has no hidden neurons that could be left out. {REMEDY}")
    return NeuronMap(spec, layers, dict(finder.uses))


@dataclass(eq=False)
class _Group:
    """Neurons that are kept or left out together: of one layer, or of layers that a sum joins."""

    number: int
    name: str
    width: int
    slots: list[Slot] = field(default_factory=list)
    blocks: int = 1
    whole: bool = False
    refusal: str = ""
    joined: _Group | None = None

    @property
    def root(self) -> _Group:
        group = self
        while group.joined is not None:
            group = group.joined
        return group

    def join(self, other: _Group) -> None:
        first, second = sorted((self.root, other.root), key=lambda group: group.number)
        if first is second:
            return
        first.slots += second.slots
        first.blocks = math.lcm(first.blocks, second.blocks)
        first.whole |= second.whole
        first.refusal = first.refusal or second.refusal
        second.joined = first


@dataclass(frozen=True)
class _Lane:
    """A result that carries neurons: along axis 1 of ``shape``, ``repeat`` entries each."""

    group: _Group
    shape: tuple[int, ...]
    repeat: int = 1


class _Finder(fx.Interpreter):
    """Runs the traced model on samples, and follows the neurons through it.

    Args:
        name: of the model.
        module: that has been traced.
        graph: what it does.
        spec: its parameters.
    """

    def __init__(self, name: str, module: nn.Module, graph: fx.Graph, spec: ParamSpec) -> None:
        super().__init__(module, graph=graph)
        self.extra_traceback = False  # errors are one line
        self.name, self.spec = name, spec
        self.groups: list[_Group] = []
        self.uses: Counter[str] = Counter()
        self._lanes: dict[fx.Node, _Lane] = {}
        self._readers: Counter[int] = Counter()  # by parameter's id

    def not_own(self, slots: Iterable[Slot]) -> str:
        """Which of the parameters is not trained, or not by one layer alone; empty if none."""
        for slot in slots:
            other = self.spec.tied_to(slot.parameter)
            if other is not None:
                return f"{slot.parameter!r} is tied to {other!r} (untie them)"
            if slot.parameter not in self.spec.shapes:
                return f"{slot.parameter!r} is frozen"
            if self._readers[id(self.fetch_attr(slot.parameter))] > 1:
                return f"{slot.parameter!r} is used more than once"
        return ""

    def run_node(self, n: fx.Node) -> Any:
        """The result of ``n``, whose neurons are noted."""
        try:
            value = super().run_node(n)
        except Exception as error:
            raise ConfigError(
                f"model {self.name} does not run on the samples: {n.name!r} fails ({_line(error)})."
                " Choose a data set that fits it."
            ) from error
        lanes = [self._lanes[source] for source in n.all_input_nodes if source in self._lanes]
        if n.op == "output":
            for lane in lanes:
                lane.group.root.whole = True
            return value
        if n.op == "get_attr" and isinstance(value, nn.Parameter):
            self._readers[id(value)] += 1
        shape = tuple(value.shape) if isinstance(value, Tensor) else ()
        found: _Lane | None = None  # where it is made of inputs and numbers alone
        if n.op == "call_module":
            found = self._through_layer(n, self.fetch_attr(str(n.target)), lanes, shape)
        elif lanes and not isinstance(value, int | torch.Size | torch.dtype | torch.device):
            found = self._through_operation(n, plain_name(n, None), lanes, shape)
        if found is not None:
            self._lanes[n] = found
        return value

    def _through_layer(
        self, node: fx.Node, layer: nn.Module, lanes: Sequence[_Lane], shape: tuple[int, ...]
    ) -> _Lane | None:
        name, kind = str(node.target), type(layer)  # a subclass may do something else
        for parameter in layer.parameters():
            self._readers[id(parameter)] += 1
        if kind in PRODUCERS:
            return self._produce(name, layer, lanes, shape)
        if not lanes:
            if kind in NO_NEURONS or all(p.ndim < 2 for p in layer.parameters()):
                return None
            own = _Lane(self._begin(name, 0), shape)  # recurrent layers, attention
            return _refuse([own], f"{name!r} is of type {kind.__name__}")
        if kind is nn.GroupNorm or kind in BATCH_NORMS:
            return self._normalise(name, layer, lanes[0], shape)
        return self._through_operation(node, plain_name(node, layer), lanes, shape)

    def _produce(
        self, name: str, layer: nn.Module, lanes: Sequence[_Lane], shape: tuple[int, ...]
    ) -> _Lane:
        """New neurons, by a layer that reads those of ``lanes``."""
        weight, groups = layer.get_parameter("weight"), getattr(layer, "groups", 1)
        new = _Lane(self._begin(name, len(weight)), shape)
        if len(shape) != weight.ndim:
            return _refuse([new, *lanes], f"{name!r} works along one of {len(shape)} axes")
        if groups != 1:
            return _refuse([new, *lanes], f"{name!r} is a convolution of {groups} groups")
        if f"{name}.weight" in self.spec.shapes:
            self.uses[f"{name}.weight"] += math.prod(shape[2:])
        for lane in lanes:
            lane.group.root.slots.append(Slot(f"{name}.weight", 1, lane.repeat))
        new.group.slots += _slots(name, layer, 1)
        return new

    def _normalise(self, name: str, layer: nn.Module, lane: _Lane, shape: tuple[int, ...]) -> _Lane:
        group = lane.group.root
        if not isinstance(layer, nn.GroupNorm):
            if layer.running_mean is not None:
                return _refuse([lane], f"{name!r} keeps running statistics")
        elif lane.repeat > 1:
            return _refuse([lane], f"{name!r} is a GroupNorm of flattened channels")
        else:
            group.blocks = math.lcm(group.blocks, layer.num_groups)
        group.slots += _slots(name, layer, lane.repeat)
        return _Lane(group, shape, lane.repeat)

    def _through_operation(
        self, node: fx.Node, kind: str, lanes: Sequence[_Lane], shape: tuple[int, ...]
    ) -> _Lane:
        lane, before = lanes[0], lanes[0].shape
        if any(one.group.root.refusal for one in lanes):
            return _refuse(lanes, "")  # nothing is known of its axes
        if kind in POINTWISE and all(_alike(one, lane, shape) for one in lanes):
            return self._join(node, lanes, shape)
        if keeps_channels(node, kind, before) and shape[:2] == before[:2]:
            return _Lane(lane.group, shape, lane.repeat)
        if kind in RESHAPES and shape[:1] == before[:1]:
            if names_width(node, kind):
                return _refuse(lanes, f"{node.name!r} says how many there are (use flatten(1))")
            if shape[:2] == before[:2]:
                return _Lane(lane.group, shape, lane.repeat)
            if len(shape) == 2:
                return _Lane(lane.group, shape, lane.repeat * shape[1] // before[1])
        if node.op == "call_module":
            layer = self.fetch_attr(str(node.target))
            return _refuse(lanes, f"{node.target!r} is of type {type(layer).__name__}")
        return _refuse(lanes, f"operation {node.name!r} does not act on each alone")

    def _join(self, node: fx.Node, lanes: Sequence[_Lane], shape: tuple[int, ...]) -> _Lane:
        """The operands' neurons, which meet one to one."""
        group = lanes[0].group
        for lane in lanes:
            group.join(lane.group)
        for source in node.all_input_nodes:
            other = self.env[source]
            if source in self._lanes or not isinstance(other, Tensor) or other.numel() == 1:
                continue
            if source.op == "get_attr":
                return _refuse(lanes, f"{source.target!r} would have to be cut with them")
            group.root.whole = True  # it is made of inputs, none of which are left out
        return _Lane(group, shape, lanes[0].repeat)

    def _begin(self, name: str, width: int) -> _Group:
        self.groups.append(_Group(len(self.groups), name, width))
        return self.groups[-1]


def _refuse(lanes: Sequence[_Lane], why: str) -> _Lane:
    """What has mixed the neurons of ``lanes``: none of them may be left out, if any may."""
    group = lanes[0].group
    for lane in lanes:
        group.join(lane.group)
    group.root.refusal = group.root.refusal or why
    return _Lane(group, lanes[0].shape)


def _slots(name: str, layer: nn.Module, repeat: int) -> list[Slot]:
    """Where a layer holds something for each of its outputs."""
    return [Slot(f"{name}.{own}", 0, repeat) for own, _ in layer.named_parameters()]


def _alike(one: _Lane, other: _Lane, shape: tuple[int, ...]) -> bool:
    """Whether the neurons of two operands meet one to one in a result of ``shape``."""
    same_axis = len(one.shape) == len(shape) and one.shape[1:2] == shape[1:2]
    return same_axis and one.repeat == other.repeat


def _line(error: Exception) -> str:
    """The first sentence of an error's text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]
