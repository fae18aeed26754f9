"""HeteroFL: clients train the first neurons of every layer (Diao, Ding and Tarokh, ICLR 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from channels.arrays import IntArray
from wirelessfl.algorithms.context import RoundContext
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.narrow import Adaptive, deal


@dataclass(frozen=True)
class HeteroFL(Adaptive, FedAvg):
    """FedAvg on nested submodels: the first neurons of each layer (Diao et al., ICLR 2021).

    A client that can afford k neurons of a layer gets the first k. Each coordinate is averaged over
    the clients that cover it. The paper's masked loss and static batch norm are omitted, so that it
    differs from the other methods only in its masks; its scaler is ``submodel_scale``. All clients
    use the same training rule.
    """

    name = "heterofl"

    def choose(self, context: RoundContext, counts: IntArray) -> list[list[IntArray]]:
        """Choose the first neurons of each layer (``ordered`` masks)."""
        return deal("ordered", context, counts)
