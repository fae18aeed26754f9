"""Latency as one random draw from request to update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from wirelessfl.errors import ConfigError
from wirelessfl.needs import Needs
from wirelessfl.tasks.delays.delay_model import DelayModel, DelayScene, TaskCosts
from wirelessfl.tasks.delays.durations import (
    PUBLISHED_STEP_SECONDS,
    Delays,
    ShiftedExponential,
    client_speeds,
)

SCALED = Needs(
    lambda run, _: run.settings.network.step_seconds is None,
    "conflicts with step_seconds={run.settings.network.step_seconds:g}, which replaces it: choose "
    "one of them",
)


@dataclass(frozen=True)
class ShiftedExponentialDelays(DelayModel):
    """One shifted-exponential draw from request to update (Askin et al., UAI 2024, App. C.6).

    Args:
        delay_scale: seconds per unit of the published relative step times; unused by tasks whose
            ``step_seconds`` gives beta itself.
    """

    radio: ClassVar[bool] = False

    delay_scale: Annotated[
        float,
        Field(gt=0, description="seconds per unit of the published relative step times"),
        SCALED,
    ] = 0.5

    def check(self, dataset: str, step_seconds: float | None) -> None:
        """Check that ``step_seconds`` or a published step time gives beta."""
        if step_seconds is None and dataset not in PUBLISHED_STEP_SECONDS:
            raise ConfigError(
                f"dataset={dataset!r} has no published step time: set step_seconds, beta of a "
                "normal client."
            )

    def build(self, scene: DelayScene) -> Delays:
        """Create durations that are random draws, without a network."""
        stream = scene.stream
        return ShiftedExponential(
            [self._beta(task) for task in scene.tasks],
            client_speeds(scene.network.clients, stream.child("client speeds")),
            stream.child("durations"),
            [task.steps for task in scene.tasks],
        )

    def _beta(self, task: TaskCosts) -> float:
        """Minimum seconds per step of a normal client."""
        if task.step_seconds is not None:
            return task.step_seconds
        return self.delay_scale * PUBLISHED_STEP_SECONDS[task.dataset]
