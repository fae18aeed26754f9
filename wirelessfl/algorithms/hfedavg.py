"""Hierarchical FedAvg: FedAvg in every cell, averaged by the cloud (Liu et al., ICC 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.base import Algorithm
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
    """

    name = "hfedavg"
    topology = "cells"
    takes_local = True

    local: Annotated[
        str, Field(description="algorithm inside the cells: any algorithm with one server")
    ] = "fedavg"

    def send(self, params: torch.Tensor, state: State, cohort: Cohort) -> dict[str, torch.Tensor]:
        """Send what clients of the algorithm in the cells send."""
        return super().send(params, state, cohort)

    def merge(self, server: State, received: Received) -> State:
        """Merge as the algorithm in the cells."""
        return super().merge(server, received)
