"""Hierarchical FedAvg: FedAvg in every cell, and a mean over cells (Liu et al., ICC 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.fedavg import FedAvg


@dataclass(frozen=True)
class HFedAvg(FedAvg):
    """FedAvg over edge servers: E edge rounds in each cell, then the cloud averages the cells."""

    name = "hfedavg"
    topology = "cells"
