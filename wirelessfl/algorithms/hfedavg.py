"""Hierarchical FedAvg: FedAvg in every cell, and a mean over cells (Liu et al., ICC 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.fedavg import Averaging


@dataclass(frozen=True)
class HFedAvg(Averaging):
    """FedAvg over edge servers: E edge rounds in each cell, then the cloud averages the cells.

    Args:
        local: what each cell runs instead of FedAvg: any algorithm of one server. Its settings come
            with it. The edge server has that server's state; the cloud averages models alone.
    """

    name = "hfedavg"
    topology = "cells"
    takes_local = True

    local: Annotated[
        str, Field(description="what clients and edge servers run: any algorithm of one server")
    ] = "fedavg"
