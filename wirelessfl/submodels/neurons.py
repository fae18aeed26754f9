"""Which neurons of a model can be left out, and what goes with them, for submodels of any width."""

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
        parameter: its name.
        axis: 0 where the layer produces the neurons, 1 where it reads them.
        repeat: entries of the axis for each neuron, one behind the other: the pixels of a channel
            that has been flattened.
    """

    parameter: str
    axis: int
    repeat: int = 1


@dataclass(frozen=True)
class Neurons:
    """Hidden neurons, or channels, that layers have in common.

    Args:
        name: of the first layer that produces them.
        width: how many there are.
        slots: where they lie: rows and biases of the layers that produce them, scales and shifts of
            norms, columns of the layers that read them. Channels that a sum joins (a residual
            stage) have several producers.
        blocks: consecutive blocks of equal size of which a submodel keeps equally many neurons
            each: the groups of a group norm, or 1.
    """

    name: str
    width: int
    slots: tuple[Slot, ...]
    blocks: int = 1


@dataclass(frozen=True, eq=False)
class NeuronMap:
    """All neurons of a model that a submodel may leave out.

    Args:
        spec: the full model's parameters.
        layers: the neurons, in the order in which the model computes them.
        uses: by parameter, multiplications of one sample with each of its entries: the pixels that
            a convolution's kernel is put on; 1 where it is not in here.
    """

    spec: ParamSpec
    layers: tuple[Neurons, ...]
    uses: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Neurons of each layer in the full model."""
        return tuple(layer.width for layer in self.layers)

    @cached_property
    def lying(self) -> dict[tuple[str, int], tuple[int, int]]:
        """By parameter and axis along which neurons lie: which of ``layers``, and the repeat."""
        return {
            (slot.parameter, slot.axis): (place, slot.repeat)
            for place, layer in enumerate(self.layers)
            for slot in layer.slots
        }

    def shapes(self, widths: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Shapes of a submodel's parameters that keeps so many neurons of each layer."""
        shapes = {name: list(shape) for name, shape in self.spec.shapes.items()}
        for layer, width in zip(self.layers, widths, strict=True):
            for slot in layer.slots:
                shapes[slot.parameter][slot.axis] = width * slot.repeat
        return {name: tuple(shape) for name, shape in shapes.items()}

    def parameters(self, widths: Sequence[int]) -> int:
        """Parameters of a submodel that keeps so many neurons of each layer."""
        return sum(math.prod(shape) for shape in self.shapes(widths).values())
