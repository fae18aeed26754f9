"""HIST: hierarchical independent submodel training (Fang, Han and Brinton, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.assigners.partition import CellPartition
from wirelessfl.algorithms.hfedavg import HFedAvg


@dataclass(frozen=True)
class Hist(CellPartition, HFedAvg):
    """HFedAvg whose cells train disjoint submodels, redrawn every round (Fang et al., 2023).

    Each cell runs FedAvg on its submodel, (4) to (6). The cloud assembles the submodels, (7), and
    averages parameters that several cells hold: those that belong to no partitioned neuron, which
    all cells share, and those of overlapping submodels. With one cell it equals FedAvg. The
    submodels and their settings are those of assigner ``partition``.
    """

    name = "hist"
