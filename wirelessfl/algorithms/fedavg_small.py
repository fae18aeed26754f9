"""FedAvg with the largest model that all clients can afford: a baseline without submodels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from channels.arrays import IntArray
from wirelessfl.algorithms.context import RoundContext
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.narrow import Narrow, deal
from wirelessfl.submodels import ClientSubmodels, NeuronMap
from wirelessfl.submodels.budgets import levels_of


@dataclass(frozen=True)
class FedAvgSmall(Narrow, FedAvg):
    """FedAvg with the largest model that the weakest client can afford (a baseline).

    The model keeps the first neurons of each layer. Evaluation uses the same submodel. The server's
    other neurons keep their initial values.
    """

    name = "fedavg-small"

    def choose(self, context: RoundContext, counts: IntArray) -> list[list[IntArray]]:
        """Choose the first neurons of each layer (``ordered`` masks)."""
        return deal("ordered", context, counts)

    def levels(self, context: RoundContext) -> IntArray:
        """Width level of the smallest capacity, the same for all senders."""
        return np.full(len(context.senders), self._smallest(context.neurons()), dtype=np.int64)

    def tested(self, neurons: Callable[[], NeuronMap]) -> ClientSubmodels | None:
        """The submodel that all clients train."""
        found = neurons()
        widths = levels_of(found).widths[self._smallest(found)]
        return ClientSubmodels(found, [[np.arange(width) for width in widths.tolist()]])

    def _smallest(self, neurons: NeuronMap) -> int:
        return levels_of(neurons).within(self.budget, min(self.capacities))
