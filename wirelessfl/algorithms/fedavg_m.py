"""FedAvg-M: FedAvg with globally tracked momentum (Cheng et al., ICLR 2024, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.momentum import GlobalMomentum


@dataclass(frozen=True)
class FedAvgM(GlobalMomentum, FedAvg):
    """FedAvg with the last round's mean step as momentum (Cheng et al., ICLR 2024, Algorithm 1).

    Local steps follow beta g + (1 - beta) d, where d is the mean step of the last round.
    """
