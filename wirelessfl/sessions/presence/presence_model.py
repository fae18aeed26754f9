"""The interface of an availability model: the clients present over time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.guard import guard, returns
from wirelessfl.registry import Choice
from wirelessfl.returned import implementing, instance
from wirelessfl.schedules import Clock
from wirelessfl.sessions.attendance import Attendance, Churn, Unit
from wirelessfl.sessions.processes import Presence, check_clients, check_sessions_by_rounds


@dataclass(frozen=True)
class PresenceScene:
    """Facts of a run that an availability model needs.

    Args:
        clients: number of registered clients.
        sessions: S, number of sessions.
        rounds: T, rounds per session.
        clock: virtual clock, in seconds.
        groups: groups of clients with different labels; None if there are none.
        stream: random stream of arrivals and stays.
    """

    clients: int
    sessions: int
    rounds: int
    clock: Clock
    groups: LabelGroups | None
    stream: Stream


@dataclass(frozen=True)
class PresenceModel(Choice, ABC):
    """Base class of all availability models."""

    by_labels: ClassVar[bool] = False
    """Whether groups of clients with different labels alternate between sessions."""

    @property
    def shared(self) -> Literal["split", "both"]:
        """How samples with labels shared by two groups are assigned to them."""
        return "split"

    @returns(instance(LabelGroups, or_none=True))
    def groups(self, classes: int, cell_of: IntArray) -> LabelGroups | None:
        """Groups of clients with different labels; None if this model does not split by labels.

        Args:
            classes: number of labels of the data set.
            cell_of: [clients], cell of each client.

        Raises:
            DataError: there are too few labels or clients.
        """
        return None

    def check(self, sessions: int, clients: int | None) -> None:
        """Raise an error if the settings do not fit the run.

        Args:
            sessions: S, number of sessions.
            clients: number of registered clients; None if not yet known.

        Raises:
            ConfigError: they do not fit; the message names the setting.
        """

    @returns(implementing(Attendance))
    @abstractmethod
    def attendance(self, scene: PresenceScene) -> Attendance:
        """Create the attendance of the run.

        Raises:
            ConfigError: a session would have no client.
        """


def churn(presence: Presence, unit: Unit, scene: PresenceScene) -> Churn:
    """Create the attendance of clients with times of ``presence`` in ``unit``.

    Raises:
        ConfigError: a session would have no client.
    """
    guard(type(presence), Presence)
    check_clients("presence", presence, "initial", presence.initial(), scene.clients)
    if unit == "rounds":
        check_sessions_by_rounds(presence, scene.sessions, scene.rounds)
    return Churn(presence, unit, scene.rounds, scene.clock)
