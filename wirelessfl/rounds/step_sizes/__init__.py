"""Step-size rules of the clients, one per file, discovered automatically."""

from wirelessfl.registry import Kind
from wirelessfl.rounds.step_sizes.poly import Decay
from wirelessfl.rounds.step_sizes.step_sizes import StepSizes, unchanged, with_step_size

STEP_SIZES: Kind[StepSizes] = Kind("lr_schedule", __name__, StepSizes, default="constant")
"""All step-size rules of the clients."""

__all__ = ["STEP_SIZES", "Decay", "StepSizes", "unchanged", "with_step_size"]
