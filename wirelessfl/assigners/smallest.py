"""Smallest: all clients train the largest model that all of them can afford (FedAvg-small)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from channels.arrays import IntArray
from wirelessfl.assigners.context import ClientContext
from wirelessfl.assigners.narrow import Narrow
from wirelessfl.submodels import ClientSubmodels, NeuronMap
from wirelessfl.submodels.budgets import levels_of


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
        found = neurons()
        widths = levels_of(found).widths[self._smallest(found)]
        return ClientSubmodels(found, [[np.arange(width) for width in widths.tolist()]])

    def _smallest(self, neurons: NeuronMap) -> int:
        return levels_of(neurons).within(self.budget, min(self.capacities))
