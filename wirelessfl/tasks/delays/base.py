"""The interface of a latency model as a setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from channels import Network
from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.registry import Choice
from wirelessfl.tasks.delays.durations import Delays, Elements
from wirelessfl.uplinks import Uplink


@dataclass(frozen=True, eq=False)
class TaskCosts:
    """What a request of one task costs.

    Args:
        dataset: name of its data set.
        local_steps: steps per request.
        step_seconds: seconds per step if the settings give them; None: cycles over CPU speed.
        seconds: [clients], seconds per step of each client.
        elements: numbers that cross the air for a whole model.
    """

    dataset: str
    local_steps: int
    step_seconds: float | None
    seconds: FloatArray
    elements: Elements


@dataclass(frozen=True, eq=False)
class Scene:
    """The run whose requests take time.

    Args:
        network: cells and clients.
        uplink: how updates cross the air.
        tasks: costs of each task.
        downlink_bps: rate to each client; None takes no time.
        stream: the run's randomness.
    """

    network: Network
    uplink: Uplink
    tasks: Sequence[TaskCosts]
    downlink_bps: float | None
    stream: Stream


@dataclass(frozen=True)
class DelayModel(Choice, ABC):
    """Base of every latency model."""

    radio: ClassVar[bool] = True
    """Whether CPU speeds and links of the network count."""

    def check(self, dataset: str, step_seconds: float | None) -> None:
        """Refuse a task whose requests have no duration.

        Raises:
            ConfigError: it has none; the message names the setting that would give one.
        """

    @abstractmethod
    def build(self, scene: Scene) -> Delays:
        """The durations of a run's requests."""
