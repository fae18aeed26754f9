"""HeteroFL: clients train the first neurons of every layer (Diao, Ding and Tarokh, ICLR 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.assigners.ordered import Nested
from wirelessfl.algorithms.fedavg import FedAvg


@dataclass(frozen=True)
class HeteroFL(Nested, FedAvg):
    """FedAvg on nested submodels: the first neurons of each layer (Diao et al., ICLR 2021).

    Each coordinate is averaged over the clients that cover it. The paper's masked loss and static
    batch norm are omitted, so that it differs from the other methods only in its masks; its scaler
    is ``submodel_scale``. All clients use the same training rule.

    Args:
        lr: step size of the clients' SGD; the narrowest submodels need larger steps than FedAvg.
    """

    name = "heterofl"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.1
