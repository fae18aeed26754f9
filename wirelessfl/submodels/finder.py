"""The neuron finder: neurons that are kept or left out together, and where they lie.

It is told which layers make, scale and read which neurons. That is seen by following a few samples
through the traced model (``find_neurons``), or said by the names of layers that follow each other
(``make_partition``), which needs no samples and also serves models that cannot be traced.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import nn

from wirelessfl.submodels.flat import ParamSpec
from wirelessfl.submodels.neurons import Neurons, Slot


@dataclass(eq=False)
class Group:
    """Neurons that are kept or left out together: of one layer, or of layers that a sum joins.

    Args:
        number: place among the groups, in the order in which they are found.
        name: of the first layer that makes them.
        width: how many there are.
        slots: where they lie.
        blocks: of which a submodel keeps equally many neurons each.
        whole: whether none of them may be left out.
        refusal: why some of them cannot be left out, if whole does not settle it.
        joined: the group that has taken these neurons over.
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
        """The group in which these neurons are now."""
        group = self
        while group.joined is not None:
            group = group.joined
        return group

    def join(self, other: Group) -> None:
        """Make one group of both: their neurons meet one to one."""
        first, second = sorted((self.root, other.root), key=lambda group: group.number)
        if first is second:
            return
        first.slots += second.slots
        first.blocks = math.lcm(first.blocks, second.blocks)
        first.whole |= second.whole
        first.refusal = first.refusal or second.refusal
        second.joined = first

    def read_by(self, name: str, repeat: int = 1) -> None:
        """Note a layer whose inputs these neurons are, ``repeat`` entries for each of them."""
        self.root.slots.append(Slot(f"{name}.weight", 1, repeat))

    def held_by(self, name: str, layer: nn.Module, repeat: int = 1) -> None:
        """Note a layer with ``repeat`` rows, biases, scales and shifts for each neuron."""
        self.root.slots += _parameter_slots(name, layer, repeat)

    def neurons(self) -> Neurons:
        """What has been found."""
        return Neurons(self.name, self.width, tuple(self.slots), self.blocks)


class NeuronFinder:
    """The groups of neurons of a model, as far as it has been followed.

    Args:
        module: the model.
        spec: its parameters.
    """

    def __init__(self, module: nn.Module, spec: ParamSpec) -> None:
        self.module, self.spec = module, spec
        self._groups: list[Group] = []
        self._readers: Counter[int] = Counter()  # by parameter's id

    def begin(self, name: str, width: int) -> Group:
        """New neurons, made by layer ``name``."""
        self._groups.append(Group(len(self._groups), name, width))
        return self._groups[-1]

    def used(self, parameter: nn.Parameter) -> None:
        """Note that the model uses ``parameter`` once (more)."""
        self._readers[id(parameter)] += 1

    @property
    def groups(self) -> list[Group]:
        """Groups of which neurons may be left out, in the order in which they are made."""
        return [group for group in self._groups if group.joined is None and not group.whole]

    def why_not_cut(self, slots: Iterable[Slot]) -> str:
        """Which of the parameters is not trained, or not by one layer alone; empty if none."""
        for slot in slots:
            name = slot.parameter
            other = self.spec.tied_to(name)
            if other is not None:
                return f"{name!r} is tied to {other!r} (untie them)"
            if name not in self.spec.shapes:
                return f"{name!r} is frozen, or computed from other parameters"
            if self._readers[id(self.module.get_parameter(name))] > 1:
                return f"{name!r} is used more than once"
        return ""


def _parameter_slots(name: str, layer: nn.Module, repeat: int = 1) -> list[Slot]:
    """Where a linear layer, a convolution or a norm holds something for each of its outputs."""
    held = {"weight": layer.weight, "bias": layer.bias}
    return [Slot(f"{name}.{kind}", 0, repeat) for kind, value in held.items() if value is not None]
