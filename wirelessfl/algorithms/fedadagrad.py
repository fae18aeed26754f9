"""FedAdagrad: the server's second moment is a sum (Reddi et al., ICLR 2021, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.fedadam import AdaptiveServer


@dataclass(frozen=True)
class FedAdagrad(AdaptiveServer):
    """FedAdam whose second moment is the sum of all squared changes, v <- v + D^2.

    b1 is 0 unless set.
    """

    beta1: Annotated[float, Field(ge=0, lt=1, description="decay of the first moment")] = 0.0

    def second_moment(self, second: Tensor, square: Tensor) -> Tensor:
        """v, after the squared change."""
        return second + square
