"""Neuron partitions: the hidden layers whose neurons are divided over the cells.

HIST paper, appendix B: the hidden neurons of every second fully connected layer are divided over
the cells. A neuron comprises its row of the layer's weight, its bias entry, and its column of the
next layer's weight; all other parameters are shared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import suggestion
from wirelessfl.models.shapes import Declared
from wirelessfl.models.submodels.flat import ParamSpec
from wirelessfl.models.submodels.neurons import NeuronFinder, Neurons, Slot

Scheme = Literal["alternate", "all"]
SHARE_DIGITS = 9
SHARE_ROUNDING = 1e-9
"""0.29 * 100 is 28.999999999999996 in float64, but the quota is 29 neurons."""


@dataclass(frozen=True)
class Partition:
    """The hidden layers of a model that are partitioned over the cells.

    Args:
        spec: the full model's parameters.
        layers: hidden neurons of the partitioned layers, in the order of the model.
        scheme: ``alternate`` partitions every second hidden layer, so a submodel has 1/N of the
            weights of the partitioned layers. ``all`` partitions every hidden layer, so it has
            1/N^2 of the weights between them (Yuan et al.); blocks that connect neurons of two
            cells are not trained in the round.
    """

    spec: ParamSpec
    layers: tuple[Neurons, ...]
    scheme: Scheme = "alternate"

    @property
    def width(self) -> int:
        """Number of neurons of the widest partitioned layer; mask sizes refer to this layer."""
        return max(layer.width for layer in self.layers)

    @cached_property
    def _sizes(self) -> list[int]:
        """Numbers of parameters of which no axis, one axis, two axes are partitioned."""
        sliced = Counter(slot.parameter for layer in self.layers for slot in layer.slots)
        sizes = [0, 0, 0]
        for name, shape in self.spec.shapes.items():
            sizes[sliced[name]] += math.prod(shape)
        return sizes

    def without(self, names: Sequence[str]) -> Partition:
        """The same partition, in which ``names`` do not count in ``lengths``."""
        shapes = {name: shape for name, shape in self.spec.shapes.items() if name not in names}
        return replace(self, spec=ParamSpec(shapes))

    def lengths(self, sizes: ArrayLike) -> FloatArray:
        """Number of parameters of submodels.

        Args:
            sizes: neurons of the widest partitioned layer, any shape; the other layers have the
                same share of their neurons.

        Returns:
            Numbers with the shape of ``sizes``. They are integers if all layers divide exactly;
            otherwise a submodel has whole neurons and differs by rounding.
        """
        none, single, double = self._sizes
        share = np.asarray(sizes, dtype=np.float64) / self.width
        return np.asarray(none + single * share + double * share**2)


def make_partition(
    module: torch.nn.Module,
    spec: ParamSpec,
    scheme: Scheme = "alternate",
    chain: Sequence[str] | None = None,
) -> Partition:
    """Make the neuron partition of ``module``.

    The consecutive layers are given by name, so no samples are needed, and models that cannot be
    traced are supported. ``training.trial.check_partition`` verifies the order by running a
    submodel.

    Args:
        module: a model whose partitioned layers are ``nn.Linear`` with elementwise maps in between.
        scheme: see ``Partition``.
        chain: names of the fully connected layers in order, from input to output; None for the
            module's attribute ``fully_connected``.

    Raises:
        ConfigError: the names are missing or do not denote consecutive linear layers, or a
            parameter cannot be sliced.
    """
    names = tuple(chain or Declared.of(module).fully_connected)
    if len(names) < 2 and sum(isinstance(layer, torch.nn.Linear) for layer in module.modules()) < 2:
        raise ConfigError(
            f"model {type(module).__name__} has fewer than two fully connected layers, so there "
            "are no neurons between them to partition: choose model fcnn, lenet5 or cifar-cnn, or "
            "an algorithm without a partition, such as hfedavg."
        )
    if len(names) == 1:
        raise ConfigError(
            f"layers is {names[0]!r}: name at least two fully connected layers in order; the "
            "neurons between them are partitioned."
        )
    if not names:
        linear = [n for n, m in module.named_modules() if isinstance(m, torch.nn.Linear)]
        raise ConfigError(
            f"model {type(module).__name__} does not declare which layers to partition. Name its "
            f"fully connected layers in order, e.g. --layers {','.join(linear)}, or set the "
            "module's attribute fully_connected."
        )
    modules, finder = dict(module.named_modules()), NeuronFinder(module, spec)
    for name in names:
        if not isinstance(modules.get(name), torch.nn.Linear):
            linear = [n for n, m in modules.items() if isinstance(m, torch.nn.Linear)]
            raise ConfigError(
                f"layers: {name!r} is not an nn.Linear of {type(module).__name__}."
                f"{suggestion(name, linear)} It has {', '.join(linear) or 'none'}."
            )
        _check_sliceable(name, [Slot(f"{name}.weight", 0)], finder)
    step = 2 if scheme == "alternate" else 1
    for producer, consumer in list(pairwise(names))[::step]:
        width, inputs = spec.shapes[f"{producer}.weight"][0], spec.shapes[f"{consumer}.weight"][1]
        if width != inputs:
            raise ConfigError(
                f"layers: {producer!r} has {width} outputs, but {consumer!r} has {inputs} inputs: "
                "name consecutive layers."
            )
        group = finder.begin(producer, width)
        group.held_by(producer, modules[producer])
        group.read_by(consumer)
        _check_sliceable(producer, group.slots, finder)
    return Partition(spec, tuple(group.neurons() for group in finder.groups), scheme)


def partition_of(spec: ParamSpec, names: Sequence[str], scheme: Scheme) -> Partition | None:
    """The neuron partition of linear layers with biases of a model that is not built.

    It equals that of ``make_partition``.

    Args:
        spec: the model's parameters, none of them tied.
        names: its fully connected layers in order.
        scheme: see ``Partition``.

    Returns:
        The partition; None if there are no neurons between the layers.
    """
    layers = tuple(
        Neurons(
            producer,
            spec.shapes[f"{producer}.weight"][0],
            (
                Slot(f"{producer}.weight", 0),
                Slot(f"{producer}.bias", 0),
                Slot(f"{consumer}.weight", 1),
            ),
        )
        for producer, consumer in list(pairwise(names))[:: 2 if scheme == "alternate" else 1]
    )
    return Partition(spec, layers, scheme) if layers else None


def _check_sliceable(name: str, slots: Sequence[Slot], finder: NeuronFinder) -> None:
    why = finder.why_not_sliced(slots)
    if why:
        raise ConfigError(
            f"layers: the neurons of {name!r} cannot be partitioned, because {why}. Name other "
            "layers, or choose an algorithm without submodels, such as hfedavg."
        )


def even_sizes(total: int, cells: int) -> list[int]:
    """Divide ``total`` evenly over cells; sizes differ by at most one."""
    return [total // cells + (cell < total % cells) for cell in range(cells)]


def sizes_by_share(total: int, shares: Sequence[float]) -> list[int]:
    """Divide ``total`` by shares: the method of largest remainders, with at least one for each.

    A cell whose quota is less than one gets one; then units go to the cells that are furthest below
    their quotas, or are taken from those that are furthest above. Equal shares give ``even_sizes``.

    Args:
        total: units to divide, at least the number of shares.
        shares: relative sizes, > 0.
    """
    quotas = np.array(shares, dtype=np.float64) * (total / sum(shares))
    sizes = np.maximum(np.floor(quotas + SHARE_ROUNDING), 1).astype(np.int64)
    while (missing := total - int(sizes.sum())) != 0:
        # Rounded, so that shares of equal remainders are served in the order of the cells.
        below = np.round(quotas - sizes, SHARE_DIGITS)
        if missing > 0:
            sizes[np.argmax(below)] += 1
        else:
            sizes[np.argmin(np.where(sizes > 1, below, np.inf))] -= 1
    return [int(size) for size in sizes]


def share_out(sizes: Sequence[int], width: int) -> list[int]:
    """Divide ``width`` neurons in proportion to ``sizes``; the rounded parts sum to ``width``."""
    ends = np.cumsum(sizes)
    # Rounding the cumulative sum instead of the sizes preserves the total.
    cuts = np.rint(ends * (width / ends[-1])).astype(int)
    return [int(count) for count in np.diff(cuts, prepend=0)]
