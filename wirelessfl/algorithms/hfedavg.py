"""Hierarchical FedAvg: FedAvg in every cell, averaged by the cloud (Liu et al., ICC 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.fedavg import Averaging


@dataclass(frozen=True)
class HFedAvg(Averaging):
    """FedAvg in every cell for E edge rounds, then the cloud averages (Liu et al., ICC 2020).

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
