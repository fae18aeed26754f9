"""SCAFFOLD: FedAvg with control variates (Karimireddy et al., ICML 2020, Alg. 1, option II)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.tracking import Tracking


@dataclass(frozen=True)
class Scaffold(Tracking, FedAvg):
    """FedAvg with control variates against client drift (Karimireddy et al., ICML 2020).

    Clients step along g + c - c_i, and c_i becomes the mean of the client's gradients. For plain
    SGD this mean equals option II, c_i - c + (x - x_i) / (K eta_l). With momentum, c_i is still the
    mean of the gradients. (The FAdamGC paper prints the correction in (3) with the opposite sign.)
    """
