"""HeteroFL: clients train the first neurons of every layer (Diao, Ding and Tarokh, ICLR 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from channels.arrays import IntArray
from wirelessfl.algorithms.context import RoundContext
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.narrow import Adaptive, deal


@dataclass(frozen=True)
class HeteroFL(Adaptive, FedAvg):
    """FedAvg on nested submodels: a client that affords k neurons of a layer has the first k.

    Each coordinate is averaged over those who have it. The paper's scaler, masked loss and static
    batch norm are left out, so that it differs from the other methods in its masks alone; clients
    all train by the same rule.
    """

    name = "heterofl"

    def choose(self, context: RoundContext, counts: IntArray) -> list[list[IntArray]]:
        """By the mask maker."""
        return deal("ordered", context, counts)
