"""FedYogi: Yogi at the server (Reddi et al., ICLR 2021, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from wirelessfl.algorithms.fedadam import FedAdam


@dataclass(frozen=True)
class FedYogi(FedAdam):
    """FedAvg with Yogi at the server (Reddi et al., ICLR 2021, Algorithm 2).

    It is FedAdam with v <- v - (1 - b2) D^2 sign(v - D^2): the change of the second moment v is
    proportional to D^2, the squared mean change, instead of v - D^2.
    """

    def second_moment(self, second: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
        """Next second moment v, given D^2."""
        return second - (1 - self.beta2) * square * (second - square).sign()
