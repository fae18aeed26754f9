"""Step-size rules of the clients, one per file, found by lying in this folder."""

from wirelessfl.registry import Kind
from wirelessfl.rounds.step_sizes.base import StepSizes, unchanged, with_step_size
from wirelessfl.rounds.step_sizes.poly import Decay

STEP_SIZES: Kind[StepSizes] = Kind("lr_schedule", __name__, StepSizes)
"""How the clients' step size can change over the rounds."""

__all__ = ["STEP_SIZES", "Decay", "StepSizes", "unchanged", "with_step_size"]
