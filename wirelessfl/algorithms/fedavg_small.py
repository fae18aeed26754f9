"""FedAvg with the largest model that every client can afford: what is lost without submodels."""

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
    """FedAvg whose model is the first neurons of each layer, as many as the weakest client affords.

    That submodel is what is evaluated. The server's other neurons stay as they were drawn.
    """

    name = "fedavg-small"

    def choose(self, context: RoundContext, counts: IntArray) -> list[list[IntArray]]:
        """By the mask maker."""
        return deal("ordered", context, counts)

    def levels(self, context: RoundContext) -> IntArray:
        """The level of the smallest capacity for everybody."""
        return np.full(len(context.senders), self._smallest(context.neurons()), dtype=np.int64)

    def tested(self, neurons: Callable[[], NeuronMap]) -> ClientSubmodels | None:
        """The common submodel."""
        found = neurons()
        widths = levels_of(found).widths[self._smallest(found)]
        return ClientSubmodels(found, [[np.arange(width) for width in widths.tolist()]])

    def _smallest(self, neurons: NeuronMap) -> int:
        return levels_of(neurons).within(self.budget, min(self.capacities))
