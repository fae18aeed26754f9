"""SCAFFOLD-M: SCAFFOLD with globally tracked momentum (Cheng et al., ICLR 2024, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.momentum import GlobalMomentum
from wirelessfl.algorithms.tracking import Tracking


@dataclass(frozen=True)
class ScaffoldM(GlobalMomentum, Tracking, FedAvg):
    """SCAFFOLD with the last round's mean step as momentum (Cheng et al., ICLR 2024, Algorithm 2).

    Local steps follow beta (g + c - c_i) + (1 - beta) d, where d is the mean step of the last
    round.
    """
