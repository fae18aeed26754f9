"""FedAvg with the largest model that all clients can afford: a baseline without submodels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.assigners.ordered import Smallest
from wirelessfl.algorithms.fedavg import FedAvg


@dataclass(frozen=True)
class FedAvgSmall(Smallest, FedAvg):
    """FedAvg with the largest model that the weakest client can afford (a baseline).

    The model keeps the first neurons of each layer. Evaluation uses the same submodel. The server's
    other neurons keep their initial values.

    Args:
        lr: step size of the clients' SGD; the narrowest submodels need larger steps than FedAvg.
    """

    name = "fedavg-small"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.1
