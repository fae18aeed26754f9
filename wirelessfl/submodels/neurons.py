"""Removable neurons of a model with their parameters, for submodels of any width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from wirelessfl.submodels.flat import ParamSpec


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
