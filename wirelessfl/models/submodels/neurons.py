"""Removable neurons: groups that submodels keep or omit together, with their parameters.

A finder records which layers produce, scale and read each group. ``find_neurons`` obtains these
layers by running a few samples through the traced model, ``make_partition`` from the names of
consecutive layers, which also works for models that cannot be traced.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch

from wirelessfl.models.submodels.flat import ParamSpec


@dataclass(frozen=True)
class Slot:
    """An axis of a parameter along which neurons lie.

    Args:
        parameter: name of the parameter.
        axis: 0 if the layer produces the neurons, 1 if it reads them.
        repeat: consecutive entries of the axis per neuron, e.g. the pixels of a flattened channel.
    """

    parameter: str
    axis: int
    repeat: int = 1


@dataclass(frozen=True)
class Neurons:
    """Hidden neurons or channels that one or more layers produce and others read.

    Args:
        name: name of the first layer that produces them.
        width: number of neurons.
        slots: parameter axes along which they lie: rows and biases of the layers that produce them,
            scales and shifts of norms, columns of the layers that read them. Channels joined by a
            sum (a residual stage) have several producers.
        blocks: number of consecutive blocks of equal size, e.g. the groups of a group norm, or 1. A
            submodel keeps the same number of neurons of each block.
    """

    name: str
    width: int
    slots: tuple[Slot, ...]
    blocks: int = 1


@dataclass(frozen=True, eq=False)
class NeuronMap:
    """All neurons of a model that a submodel may omit.

    Args:
        spec: the full model's parameters.
        layers: the neurons, in the order of computation.
        uses: by parameter, multiplications per sample with each entry, e.g. the number of output
            pixels of a convolution; 1 for parameters that are not listed.
    """

    spec: ParamSpec
    layers: tuple[Neurons, ...]
    uses: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of neurons of each layer in the full model."""
        return tuple(layer.width for layer in self.layers)

    @cached_property
    def by_axis(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Maps (parameter, axis) along which neurons lie to (index in ``layers``, repeat)."""
        return {
            (slot.parameter, slot.axis): (i, slot.repeat)
            for i, layer in enumerate(self.layers)
            for slot in layer.slots
        }

    def shapes(self, widths: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Shapes of the parameters of a submodel with ``widths`` neurons per layer."""
        shapes = {name: list(shape) for name, shape in self.spec.shapes.items()}
        for layer, width in zip(self.layers, widths, strict=True):
            for slot in layer.slots:
                shapes[slot.parameter][slot.axis] = width * slot.repeat
        return {name: tuple(shape) for name, shape in shapes.items()}

    def parameters(self, widths: Sequence[int]) -> int:
        """Number of parameters of a submodel with ``widths`` neurons per layer."""
        return sum(math.prod(shape) for shape in self.shapes(widths).values())


@dataclass(eq=False)
class Group:
    """Neurons that are kept or omitted together: of one layer, or of layers joined by a sum.

    Args:
        number: index of the group, in the order of discovery.
        name: name of the first layer that produces the neurons.
        width: number of neurons.
        slots: parameter axes along which the neurons lie.
        blocks: number of blocks; a submodel keeps the same number of neurons of each block.
        whole: whether all neurons must be kept.
        refusal: why neurons cannot be omitted; empty if they can, ignored if ``whole``.
        joined: the group into which this one was merged.
    """

    number: int
    name: str
    width: int
    slots: list[Slot] = field(default_factory=list)
    blocks: int = 1
    whole: bool = False
    refusal: str = ""
    joined: Group | None = None

    @property
    def root(self) -> Group:
        """The group into which this one was finally merged."""
        group = self
        while group.joined is not None:
            group = group.joined
        return group

    def join(self, other: Group) -> None:
        """Merge both groups, whose neurons correspond one to one."""
        first, second = sorted((self.root, other.root), key=lambda group: group.number)
        if first is second:
            return
        first.slots += second.slots
        first.blocks = math.lcm(first.blocks, second.blocks)
        first.whole |= second.whole
        first.refusal = first.refusal or second.refusal
        second.joined = first

    def read_by(self, name: str, repeat: int = 1) -> None:
        """Record a layer that reads these neurons, with ``repeat`` inputs per neuron."""
        self.root.slots.append(Slot(f"{name}.weight", 1, repeat))

    def held_by(self, name: str, layer: torch.nn.Module, repeat: int = 1) -> None:
        """Record a layer with ``repeat`` rows, biases, scales and shifts per neuron."""
        self.root.slots += _parameter_slots(name, layer, repeat)

    def neurons(self) -> Neurons:
        """The group's neurons with their parameters."""
        return Neurons(self.name, self.width, tuple(self.slots), self.blocks)


class NeuronFinder:
    """Records the groups of neurons of a model, layer by layer."""

    def __init__(self, module: torch.nn.Module, spec: ParamSpec) -> None:
        self.module, self.spec = module, spec
        self._groups: list[Group] = []
        self.produced: dict[str, Group] = {}
        """The neurons of each layer that produces some, by the layer's name."""
        self._readers: Counter[int] = Counter()  # number of uses, by the parameter's id

    def begin(self, name: str, width: int) -> Group:
        """Start a group of neurons that layer ``name`` produces."""
        self._groups.append(Group(len(self._groups), name, width))
        self.produced.setdefault(name, self._groups[-1])
        return self._groups[-1]

    def used(self, parameter: torch.nn.Parameter) -> None:
        """Record one use of ``parameter`` by the model."""
        self._readers[id(parameter)] += 1

    @property
    def groups(self) -> list[Group]:
        """Groups whose neurons may be omitted, in the order of computation."""
        return [group for group in self._groups if group.joined is None and not group.whole]

    def why_not_sliced(self, slots: Iterable[Slot]) -> str:
        """Why a parameter in ``slots`` cannot be sliced for submodels; empty if all can."""
        for slot in slots:
            name = slot.parameter
            alias = self.spec.tied_to(name)
            if alias is not None:
                return f"{name!r} is tied to {alias!r} (untie them)"
            if name not in self.spec.shapes:
                return f"{name!r} is frozen or computed from other parameters"
            if self._readers[id(self.module.get_parameter(name))] > 1:
                return f"{name!r} is used more than once"
        return ""


def _parameter_slots(name: str, layer: torch.nn.Module, repeat: int = 1) -> list[Slot]:
    """Parameter axes of a linear layer, convolution or norm along which its outputs lie."""
    held = {"weight": layer.weight, "bias": layer.bias}
    return [Slot(f"{name}.{kind}", 0, repeat) for kind, value in held.items() if value is not None]
