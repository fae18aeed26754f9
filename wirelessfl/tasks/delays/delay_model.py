"""The interface of latency models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from channels import Network
from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.guard import returns
from wirelessfl.registry import Choice
from wirelessfl.returned import instance
from wirelessfl.tasks.delays.durations import Delays, Elements, StepSeconds
from wirelessfl.training.step_counts import StepCounts
from wirelessfl.uplinks import Uplink


@dataclass(frozen=True, eq=False)
class TaskCosts:
    """Costs of a request of one task.

    Args:
        dataset: name of its data set.
        steps: steps per request of each client.
        step_seconds: setting ``step_seconds``; None if a step takes its cycles / CPU speed.
        seconds: seconds per step by client.
        elements: elements sent for a full model.
    """

    dataset: str
    steps: StepCounts
    step_seconds: float | None
    seconds: FloatArray | StepSeconds
    elements: Elements

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
    """

    network: Network
    uplink: Uplink
    tasks: Sequence[TaskCosts]
    downlink_bps: float | None
    stream: Stream


@dataclass(frozen=True)
class DelayModel(Choice, ABC):
    """Base class of all latency models. Its dataclass fields are its settings."""

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
