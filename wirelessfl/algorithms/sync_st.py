"""Algorithms that train several tasks on disjoint clients, and how they assign the tasks.

Sync-ST (Bhuyan, Moharir and Joshi, 2023), Sync-Bayes-ST with Bayesian optimisation (Zhou et al.,
AAAI 2022), Sync-UCB-ST with a bandit (Bhuyan and Moharir, COMSNETS 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.fedavg import Averaging
from wirelessfl.training.rules import Received


@dataclass(frozen=True)
class TaskRule(Averaging):
    """Local SGD with weight decay and without momentum (Askin et al., UAI 2024, Algorithm 1).

    The paper's bounds and the rule of option D hold for SGD without momentum. In the paper's
    notation the update x_tau - x is -tau eta_c Delta.
    """

    name = ""

    lr: Annotated[
        float, Field(gt=0, le=1e30, description="step size eta_c of the clients' SGD")
    ] = 0.1
    weight_decay: Annotated[
        float, Field(ge=0, description="weight decay lambda of the clients, lambda/2 ||x||^2")
    ] = 0.0

    @property
    def shrink(self) -> float:
        """Factor 1 - eta_c lambda of weight decay."""
        return 1.0 - self.lr * self.weight_decay


def staleness(received: Received, like: torch.Tensor) -> torch.Tensor:
    """Staleness [clients, 1]: merges since the client received its model; 0 if unknown."""
    if received.staleness is None:
        return like.new_zeros(len(received.clients), 1)
    return like.new_tensor(received.staleness.tolist())[:, None]


@dataclass(frozen=True)
class SyncST(TaskRule):
    """FedAvg of several tasks at once on disjoint clients (Bhuyan, Moharir and Joshi, 2023)."""

    name = "sync-st"


@dataclass(frozen=True)
class SyncBayesST(SyncST):
    """Sync-ST with assignment "bayes": short and fair rounds (Zhou et al., AAAI 2022)."""

    name = "sync-bayes-st"


@dataclass(frozen=True)
class SyncUCBST(SyncST):
    """Sync-ST with assignment "bandit": prefers high losses (Bhuyan and Moharir, COMSNETS 2022)."""

    name = "sync-ucb-st"
