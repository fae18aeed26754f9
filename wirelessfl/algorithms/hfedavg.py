"""Hierarchical FedAvg: FedAvg in every cell, averaged by the cloud (Liu et al., ICC 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.algorithm import Algorithm
from wirelessfl.submodels import Submodels
from wirelessfl.training.cohort import Cohort, State
from wirelessfl.training.payloads import Received


@dataclass(frozen=True)
class HFedAvg(Algorithm):
    """FedAvg in every cell for E edge rounds, then the cloud averages (Liu et al., ICC 2020).

    It has no rules of its own: those of clients and edge servers are those of ``local``.

    Args:
        local: algorithm that each cell runs instead of FedAvg: any algorithm with one server. Its
            settings are available too. Each edge server keeps the server state of that algorithm;
            the cloud averages only the models.
        cloud_lr: step size of the cloud along the mean change of its model; 1 averages the models.
            If the cloud aggregates B of N cells at a time (schedule ``buffered``), B/N makes as
            long a step per pass through all cells as one synchronous round.
    """

    name = "hfedavg"
    topology = "cells"
    takes_local = True

    local: Annotated[
        str, Field(description="algorithm inside the cells: any algorithm with one server")
    ] = "fedavg"
    cloud_lr: Annotated[
        float, Field(gt=0, description="step size of the cloud along the mean change")
    ] = 1.0

    def combine(
        self, cloud: State, nodes: State, submodels: Submodels, weights: Sequence[float]
    ) -> State:
        """Step along the mean change: x <- x + cloud_lr (mean - x); other state is averaged."""
        found = super().combine(cloud, nodes, submodels, weights)
        if self.cloud_lr == 1.0:  # no rounding
            return found
        return found | {"params": torch.lerp(cloud["params"], found["params"], self.cloud_lr)}

    def send(self, params: torch.Tensor, state: State, cohort: Cohort) -> dict[str, torch.Tensor]:
        """Send what clients of the algorithm in the cells send."""
        return super().send(params, state, cohort)

    def merge(self, server: State, received: Received) -> State:
        """Merge as the algorithm in the cells."""
        return super().merge(server, received)
