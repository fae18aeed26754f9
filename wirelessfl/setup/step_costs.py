"""Cost of a full-model local step in CPU cycles, from its number of FLOPs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError

if TYPE_CHECKING:
    from wirelessfl.training.objective import Objective


@dataclass(frozen=True)
class StepCost:
    """Cost of a mini-batch step of the full model, at the configured batch size.

    Args:
        model: class of the model.
        batch_size: samples per step.
        flops: counted FLOPs, see ``wirelessfl.training.flops``.
        cycles: number of CPU cycles, ``cycles_per_flop`` times ``flops``.
    """

    model: str
    batch_size: int
    flops: int
    cycles: float

    @property
    def note(self) -> str:
        """The cost as a message for the user."""
        return (
            f"a local step of {self.model} on {self.batch_size} samples takes {self.flops} FLOPs, "
            f"which is cycles_per_step={self.cycles!r}."
        )


def counted_cost(
    config: Config, objective: Objective, inputs: torch.Tensor, labels: torch.Tensor
) -> StepCost | None:
    """The counted cost of a step; None unless ``cycles_per_flop`` is set.

    A submodel needs cycles in proportion to its parameters, as with ``cycles_per_step``.

    Args:
        config: settings of the model.
        objective: the model and its loss.
        inputs: [samples, ...], training samples on the model's device.
        labels: [samples], their labels.

    Raises:
        ConfigError: torch counts no FLOPs in the model.
    """
    per_flop, batch_size = config.network.cycles_per_flop, config.training.batch_size
    if per_flop is None:
        return None
    from wirelessfl.training.flops import step_flops  # loads PyTorch

    model = type(objective.module).__name__
    flops = step_flops(objective, inputs, labels, batch_size)
    if flops == 0:
        raise ConfigError(
            f"cycles_per_flop is {per_flop}, but torch counts no FLOPs in model {model}, which has "
            "no matrix products or convolutions. Give cycles_per_step instead."
        )
    return StepCost(model, batch_size, flops, per_flop * flops)
