"""Latency models of requests and of rounds of tasks: interface and built-in models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from channels import Network
from channels.arrays import FloatArray
from channels.by_client import ByKind
from channels.streams import Stream
from wirelessfl.air.durations import (
    PUBLISHED_STEP_SECONDS,
    Delays,
    ShiftedExponential,
    StepSeconds,
    Wireless,
    client_speeds,
)
from wirelessfl.air.links import check_flat
from wirelessfl.air.traffic import Traffic
from wirelessfl.air.uplinks import Uplink
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import instance, returns
from wirelessfl.base.needs import ONE_SERVER, TASKS, Needs
from wirelessfl.base.registry import Choice, Kind
from wirelessfl.training.steps import StepCounts


@dataclass(frozen=True, eq=False)
class TaskCosts:
    """Costs of a request of one task.

    Args:
        dataset: name of its data set.
        steps: steps per request of each client.
        step_seconds: setting ``step_seconds``; None if a step takes its cycles / CPU speed.
        seconds: seconds per step by client.
        traffic: bits of uploads and downloads.
    """

    dataset: str
    steps: StepCounts
    step_seconds: float | None
    seconds: FloatArray | StepSeconds
    traffic: Traffic

    @property
    def local_steps(self) -> int:
        """Steps per request of all clients.

        Raises:
            ConfigError: clients have different numbers of steps.
        """
        if self.steps.each is not None:
            raise ConfigError(
                "local_epochs gives clients different numbers of local steps, which the delays do "
                "not support: give local_steps instead."
            )
        return self.steps.common


@dataclass(frozen=True, eq=False)
class DelayScene:
    """Facts of a run on which the durations of its requests depend.

    Args:
        network: cells and clients.
        uplink: how updates cross the air.
        tasks: costs of each task.
        downlink_bps: rate to each client; None if the downlink takes no time.
        stream: random stream of the run.
        pilot_symbols: pilot symbols of each client before its upload.
    """

    network: Network
    uplink: Uplink
    tasks: Sequence[TaskCosts]
    downlink_bps: float | ByKind | None
    stream: Stream
    pilot_symbols: int = 0


@dataclass(frozen=True)
class DelayModel(Choice, ABC):
    """Base class of all latency models. Its dataclass fields are its settings."""

    name = "delay-model"

    radio: ClassVar[bool] = True
    """Whether durations depend on CPU speeds and links of the network."""

    def check(self, dataset: str, step_seconds: float | None) -> None:
        """Check that the settings of a task determine the durations of its requests.

        Raises:
            ConfigError: they do not; the message names the missing setting.
        """

    @returns(instance(Delays))
    @abstractmethod
    def build(self, scene: DelayScene) -> Delays:
        """Create the durations of a run's requests."""


DELAYS: Kind[DelayModel] = Kind(
    "delays",
    __name__,
    DelayModel,
    default="wireless",
    needs=(ONE_SERVER, TASKS),
    text="latency model of requests",
    heading="schedule",
)
"""All latency models of training requests."""


SCALED = Needs(
    lambda run, _: run.settings.network.step_seconds is None,
    "conflicts with step_seconds={run.settings.network.step_seconds:g}, which replaces it: choose "
    "one of them",
)


@dataclass(frozen=True)
class ShiftedExponentialDelays(DelayModel):
    """One shifted-exponential draw from request to update (Askin et al., UAI 2024, App. C.6)."""

    name = "shifted-exponential"

    radio: ClassVar[bool] = False

    delay_scale: Annotated[
        float,
        Field(
            gt=0,
            description=(
                "seconds per unit of the published relative step times; unused by "
                "tasks with step_seconds"
            ),
        ),
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


@dataclass(frozen=True)
class WirelessDelays(DelayModel):
    """Local steps at each client's CPU speed, then an upload over a shared band."""

    name = "wireless"

    def build(self, scene: DelayScene) -> Delays:
        """Create durations from the network's CPU speeds and channels.

        Raises:
            ConfigError: channels differ over the band.
        """
        check_flat(scene.network, scene.uplink, alone=True)
        return Wireless(
            scene.network,
            scene.uplink,
            [task.steps for task in scene.tasks],
            [task.seconds for task in scene.tasks],
            [task.traffic for task in scene.tasks],
            scene.downlink_bps,
            scene.stream.child("uploads"),
            scene.pilot_symbols,
        )


__all__ = [
    "DELAYS",
    "PUBLISHED_STEP_SECONDS",
    "DelayModel",
    "DelayScene",
    "Delays",
    "ShiftedExponential",
    "StepSeconds",
    "TaskCosts",
    "Wireless",
    "client_speeds",
]
