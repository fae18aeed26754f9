"""FedYogi: FedAdam whose second moment moves by steps of one sign (Reddi et al., ICLR 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from wirelessfl.algorithms.fedadam import FedAdam


@dataclass(frozen=True)
class FedYogi(FedAdam):
    """FedAdam whose second moment changes in proportion to the squared change, not to itself.

    v <- v - (1 - b2) D^2 sign(v - D^2).
    """

    def second_moment(self, second: Tensor, square: Tensor) -> Tensor:
        """v, after the squared change."""
        return second - (1 - self.beta2) * square * (second - square).sign()
