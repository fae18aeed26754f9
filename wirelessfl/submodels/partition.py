"""Neuron partitions: which hidden neurons can be split, and what a neuron takes with it.

HIST paper, appendix B: hidden neurons of every second fully connected layer are split over the
cells. A neuron takes its row of the layer's weight, its bias entry, and its column of the next
layer's weight; what no split layer owns is shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from torch import nn

from wirelessfl.errors import ConfigError
from wirelessfl.models.declared import Declared
from wirelessfl.submodels.finder import NeuronFinder
from wirelessfl.submodels.flat import ParamSpec
from wirelessfl.submodels.neurons import Neurons, Slot
from wirelessfl.wording import suggestion

Scheme = Literal["alternate", "all"]


@dataclass(frozen=True)
class Partition:
    """The hidden layers of a model that are split over the cells.

    Args:
        spec: the full model's parameters.
        layers: hidden neurons of the split layers, in the order of the model.
        scheme: ``alternate`` splits every second hidden layer, so that a submodel is 1/N of the
            split layers; ``all`` splits each, so that it is 1/N^2 (Yuan et al.), and the blocks
            that join neurons of two cells rest for the round.
    """

    spec: ParamSpec
    layers: tuple[Neurons, ...]
    scheme: Scheme = "alternate"

    @property
    def width(self) -> int:
        """Neurons of the widest split layer, in whose units mask sizes are given."""
        return max(layer.width for layer in self.layers)

    @property
    def parameters_per_neuron(self) -> float:
        """Parameters that one more neuron of the widest layer adds (``alternate`` only)."""
        weight = [self._neuron_parameters(layer) for layer in self.layers]
        share = [layer.width / self.width for layer in self.layers]
        return sum(w * s for w, s in zip(weight, share, strict=True))

    @property
    def shared_parameters(self) -> int:
        """Parameters that no split neuron owns; every cell trains them (``alternate`` only)."""
        owned = sum(self._neuron_parameters(layer) * layer.width for layer in self.layers)
        return self.spec.size - owned

    def _neuron_parameters(self, layer: Neurons) -> int:
        return sum(
            slot.repeat
            * math.prod(self.spec.shapes[slot.parameter])
            // self.spec.shapes[slot.parameter][slot.axis]
            for slot in layer.slots
        )


def make_partition(
    module: nn.Module,
    spec: ParamSpec,
    scheme: Scheme = "alternate",
    chain: Sequence[str] | None = None,
) -> Partition:
    """The neuron partition of ``module``.

    The layers that follow each other are named, not seen: so a model can be split that cannot be
    traced, and no samples are needed. Whether they do follow each other shows when a submodel runs
    (``training.trial.check_partition``).

    Args:
        module: any model whose split layers are ``nn.Linear`` with elementwise maps between them.
        spec: its parameters.
        scheme: see ``Partition``.
        chain: names of the fully connected layers in order, input to output; default: the
            module's attribute ``fully_connected``.

    Raises:
        ConfigError: the chain is missing, or names something that is not a chain of linear layers.
    """
    names = tuple(chain or Declared.of(module).fully_connected)
    if len(names) == 1:
        raise ConfigError(
            f"layers is {names[0]!r}: name at least two fully connected layers in order; the "
            "neurons between them are split."
        )
    if not names:
        raise ConfigError(
            f"model {type(module).__name__} does not say which layers to split. Name its fully "
            "connected layers in order, e.g. --layers fc1,fc2, or set the module's attribute "
            "fully_connected."
        )
    modules, finder = dict(module.named_modules()), NeuronFinder(module, spec)
    for name in names:
        if not isinstance(modules.get(name), nn.Linear):
            linear = [n for n, m in modules.items() if isinstance(m, nn.Linear)]
            raise ConfigError(
                f"layers: {name!r} is not an nn.Linear of {type(module).__name__}."
                f"{suggestion(name, linear)} It has {', '.join(linear) or 'none'}."
            )
        _check_cuttable(name, [Slot(f"{name}.weight", 0)], finder)
    step = 2 if scheme == "alternate" else 1
    for producer, consumer in list(pairwise(names))[::step]:
        width, inputs = spec.shapes[f"{producer}.weight"][0], spec.shapes[f"{consumer}.weight"][1]
        if width != inputs:
            raise ConfigError(
                f"layers: {producer!r} has {width} outputs and {consumer!r} {inputs} inputs: "
                "they do not follow each other."
            )
        group = finder.begin(producer, width)
        group.held_by(producer, modules[producer])
        group.read_by(consumer)
        _check_cuttable(producer, group.slots, finder)
    return Partition(spec, tuple(group.neurons() for group in finder.groups), scheme)


def _check_cuttable(name: str, slots: Sequence[Slot], finder: NeuronFinder) -> None:
    """Refuse a layer with a parameter that cannot be cut.

    Raises:
        ConfigError: one of ``slots`` is frozen, computed from others, or tied.
    """
    why = finder.why_not_cut(slots)
    if why:
        raise ConfigError(
            f"layers: the neurons of {name!r} cannot be split, because {why}. Name other layers, "
            "or choose an algorithm without submodels, such as hfedavg."
        )


def even_sizes(total: int, cells: int) -> list[int]:
    """``total`` shared out evenly; sizes differ by one where it does not divide."""
    return [total // cells + (cell < total % cells) for cell in range(cells)]


def share_out(sizes: Sequence[int], width: int) -> list[int]:
    """``width`` neurons in the proportions of ``sizes``, rounded so that they sum to it."""
    ends = np.cumsum(sizes)
    # Rounding the running sum, not the sizes, keeps the sum whole.
    cuts = np.rint(ends * (width / ends[-1])).astype(int)
    return [int(count) for count in np.diff(cuts, prepend=0)]
