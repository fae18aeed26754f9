"""FedAvg on submodels of affordable widths: HeteroFL, FedRolex, and the smallest for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.assigners.ordered import Nested, Rolling, Smallest
from wirelessfl.algorithms.fedavg import FedAvg


@dataclass(frozen=True)
class HeteroFL(Nested, FedAvg):
    """FedAvg on nested submodels: the first neurons of each layer (Diao et al., ICLR 2021).

    Each coordinate is averaged over the clients that cover it. The paper's masked loss and static
    batch norm are omitted, so that it differs from the other methods only in its masks; its scaler
    is ``submodel_scale``. All clients use the same training rule.
    """

    name = "heterofl"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.1


@dataclass(frozen=True)
class FedRolex(Rolling, FedAvg):
    """FedAvg on submodels whose windows of neurons move each round (Alam et al., NeurIPS 2022).

    Each coordinate is averaged over the clients that cover it.
    """

    name = "fedrolex"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.1


@dataclass(frozen=True)
class FedAvgSmall(Smallest, FedAvg):
    """FedAvg with the largest model that the weakest client can afford (a baseline).

    The model keeps the first neurons of each layer. Evaluation uses the same submodel. The server's
    other neurons keep their initial values.
    """

    name = "fedavg-small"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.1
