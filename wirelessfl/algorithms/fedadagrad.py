"""FedAdagrad: Adagrad at the server (Reddi et al., ICLR 2021, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.fedadam import AdaptiveServer


@dataclass(frozen=True)
class FedAdagrad(AdaptiveServer):
    """Adagrad at the server: FedAdam with v <- v + D^2 (Reddi et al., ICLR 2021).

    The second moment v is the sum of all squared mean changes D^2. b1 is 0 by default.
    """

    beta1: Annotated[float, Field(ge=0, lt=1, description="decay of the first moment")] = 0.0

    def second_moment(self, second: Tensor, square: Tensor) -> Tensor:
        """Next second moment v, given D^2."""
        return second + square
