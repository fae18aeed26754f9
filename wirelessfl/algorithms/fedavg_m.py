"""FedAvg-M: FedAvg with globally tracked momentum (Cheng et al., ICLR 2024, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.momentum import GlobalMomentum


@dataclass(frozen=True)
class FedAvgM(GlobalMomentum, FedAvg):
    """FedAvg whose local steps follow beta g + (1 - beta) d, d being the last round's mean step."""
