"""Step-size rules of the clients, one per file, discovered automatically."""

from typing import Any

from wirelessfl.needs import Fits
from wirelessfl.registry import Kind
from wirelessfl.rounds.step_sizes.poly import Decay
from wirelessfl.rounds.step_sizes.step_sizes import StepSizes, unchanged, with_step_size


def _equal_steps(run: Any, _: Any) -> bool:
    """Whether updates of a merge have one step size, or the algorithm does not divide by it."""
    settings, stale = run.settings, run.regime.of_tasks and run.schedule.work == "requests"
    return settings.lr_schedule.constant or not (stale and settings.algorithm.rule.merges_by_lr)


EQUAL_STEPS = Fits(
    _equal_steps,
    'conflicts with algorithm "{run.title}", which divides by the clients\' step size: '
    'it differs within a merge under schedule "{run.schedule.title}". Choose lr_schedule '
    '"constant", or schedule "rounds"',
)
STEP_SIZES: Kind[StepSizes] = Kind(
    "lr_schedule",
    __name__,
    StepSizes,
    default="constant",
    table=(EQUAL_STEPS,),
    text="step size over the rounds",
)
"""All step-size rules of the clients."""

__all__ = ["STEP_SIZES", "Decay", "StepSizes", "unchanged", "with_step_size"]
