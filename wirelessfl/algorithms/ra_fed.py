"""RA-Fed: each client trains a submodel of arbitrary neurons (KDD '23, supplement A.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.assigners.arbitrary import Masked
from wirelessfl.algorithms.fedavg import FedAvg


@dataclass(frozen=True)
class RaFed(Masked, FedAvg):
    """FedAvg on submodels, averaged per coordinate over the clients that cover it (KDD '23).

    theta^i <- theta^i - (1/Gamma^i) sum_{n covers i} (theta_{n,0} - theta_{n,T})^i. Coordinates
    that no client covers in a round do not change. With full submodels it equals FedAvg. With
    disjoint submodels it equals HIST with one client per cell and one edge round.

    Args:
        lr: step size of the clients' SGD; the narrowest submodels need larger steps than FedAvg.
    """

    name = "ra-fed"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.1
