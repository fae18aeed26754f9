"""FedRolex: windows of neurons that roll on in every round (Alam et al., NeurIPS 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from channels.arrays import IntArray
from wirelessfl.algorithms.context import RoundContext
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.narrow import Adaptive, deal


@dataclass(frozen=True)
class FedRolex(Adaptive, FedAvg):
    """FedAvg on rolling submodels: in round j windows begin at neuron j, modulo the layer's width.

    A client that affords k neurons of a layer has the k from there on, round the end. Each
    coordinate is averaged over those who have it.
    """

    name = "fedrolex"

    def choose(self, context: RoundContext, counts: IntArray) -> list[list[IntArray]]:
        """By the mask maker."""
        return deal("rolling", context, counts)
