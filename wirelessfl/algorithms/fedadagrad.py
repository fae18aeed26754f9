"""FedAdagrad: Adagrad at the server (Reddi et al., ICLR 2021, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.fedadam import AdaptiveServer


@dataclass(frozen=True)
class FedAdagrad(AdaptiveServer):
    """FedAvg with Adagrad at the server (Reddi et al., ICLR 2021, Algorithm 2).

    It is FedAdam with v <- v + D^2: the second moment is the sum of all squared mean changes. b1 is
    0 by default.
    """

    beta1: Annotated[float, Field(ge=0, lt=1, description="decay of the first moment")] = 0.0

    def second_moment(self, second: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        """Next second moment v, given D^2."""
        return second + square
