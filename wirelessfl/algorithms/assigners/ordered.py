"""Submodels of the first neurons, of windows of neurons, and of one size for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from channels.arrays import IntArray
from wirelessfl.algorithms.assigners.adaptive import Adaptive
from wirelessfl.algorithms.assigners.assigner import ClientContext
from wirelessfl.algorithms.assigners.narrow import Narrow
from wirelessfl.models.submodels import ClientSubmodels, NeuronMap
from wirelessfl.models.submodels.budgets import levels_of
from wirelessfl.models.submodels.masks import Masks


@dataclass(frozen=True)
class Nested(Adaptive):
    """Nested submodels: the first neurons of each layer (Diao et al., ICLR 2021).

    A client that can afford k neurons of a layer gets the first k.
    """

    name = "nested"

    @property
    def kind(self) -> Masks:
        """Masks ``ordered``."""
        return "ordered"


@dataclass(frozen=True)
class Rolling(Adaptive):
    """Windows of neurons that move each round (Alam et al., NeurIPS 2022).

    In round j the window starts at neuron j, modulo the layer's width. A client that can afford k
    neurons of a layer gets k consecutive ones from there, cyclically.
    """

    name = "rolling"

    @property
    def kind(self) -> Masks:
        """Masks ``rolling``."""
        return "rolling"


@dataclass(frozen=True)
class Smallest(Narrow):
    """The first neurons of each layer, as many as the weakest client can afford.

    Evaluation uses the same submodel. The server's other neurons keep their initial values.
    """

    name = "smallest"

    def levels(self, context: ClientContext) -> IntArray:
        """Width level of the smallest capacity, the same for all senders."""
        return np.full(len(context.senders), self._smallest(context.neurons()), dtype=np.int64)

    def tested(self, neurons: Callable[[], NeuronMap]) -> ClientSubmodels | None:
        """The submodel that all clients train."""
        layers = neurons()
        widths = levels_of(layers).widths[self._smallest(layers)]
        return ClientSubmodels(layers, [[np.arange(width) for width in widths.tolist()]])

    def _smallest(self, neurons: NeuronMap) -> int:
        return levels_of(neurons).within(self.budget, min(self.capacities))
