"""FedRolex: submodels are windows of neurons that move each round (Alam et al., NeurIPS 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from channels.arrays import IntArray
from wirelessfl.algorithms.context import RoundContext
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.narrow import Adaptive, deal


@dataclass(frozen=True)
class FedRolex(Adaptive, FedAvg):
    """FedAvg on submodels whose windows of neurons move each round (Alam et al., NeurIPS 2022).

    In round j the window starts at neuron j, modulo the layer's width. A client that can afford k
    neurons of a layer gets k consecutive ones from there, cyclically. Each coordinate is averaged
    over the clients that cover it.
    """

    name = "fedrolex"

    def choose(self, context: RoundContext, counts: IntArray) -> list[list[IntArray]]:
        """Choose windows that start at the round's index (``rolling`` masks)."""
        return deal("rolling", context, counts)
