"""SCAFFOLD: FedAvg with control variates (Karimireddy et al., ICML 2020, Alg. 1, option II)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.tracking import Tracking


@dataclass(frozen=True)
class Scaffold(Tracking, FedAvg):
    """Clients step along g + c - c_i; c_i becomes the mean of their gradients.

    Option II, c_i - c + (x - x_i) / (K eta_l), is that mean where the steps are plain SGD; with
    momentum, c_i stays the mean of gradients. (The FAdamGC paper prints the sign of the correction
    reversed in (3).)
    """
