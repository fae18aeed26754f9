"""FedRolex: submodels are windows of neurons that move each round (Alam et al., NeurIPS 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.assigners.ordered import Rolling
from wirelessfl.algorithms.fedavg import FedAvg


@dataclass(frozen=True)
class FedRolex(Rolling, FedAvg):
    """FedAvg on submodels whose windows of neurons move each round (Alam et al., NeurIPS 2022).

    Each coordinate is averaged over the clients that cover it.

    Args:
        lr: step size of the clients' SGD; the narrowest submodels need larger steps than FedAvg.
    """

    name = "fedrolex"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.1
