"""The interface of an availability model: which clients are present when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.data.label_groups import LabelGroups
from wirelessfl.registry import Choice
from wirelessfl.schedules import Clock
from wirelessfl.sessions.attendance import Attendance, Churn, Unit
from wirelessfl.sessions.processes import Presence, check_sessions_by_rounds


@dataclass(frozen=True)
class Scene:
    """The run whose clients join and leave.

    Args:
        clients: number of registered clients.
        sessions: S.
        rounds: T, rounds per session.
        clock: virtual seconds.
        groups: groups of clients with sets of labels; None without them.
        stream: randomness of arrivals and stays.
    """

    clients: int
    sessions: int
    rounds: int
    clock: Clock
    groups: LabelGroups | None
    stream: Stream


@dataclass(frozen=True)
class PresenceModel(Choice, ABC):
    """Base of every availability model."""

    by_labels: ClassVar[bool] = False
    """Whether groups of clients with different labels take turns."""

    @property
    def shared(self) -> Literal["split", "both"]:
        """How the samples of labels that two groups share are dealt to them."""
        return "split"

    def groups(self, classes: int, cell_of: IntArray) -> LabelGroups | None:
        """Groups of clients with different labels; None if this model does not split by labels.

        Args:
            classes: number of labels of the data set.
            cell_of: [clients], the cell of each client.

        Raises:
            DataError: there are too few labels or clients.
        """
        return None

    def check(self, sessions: int, clients: int | None) -> None:
        """Refuse settings that do not fit the run.

        Args:
            sessions: S.
            clients: number of registered clients; None if not yet known.

        Raises:
            ConfigError: they do not; the message names the setting.
        """

    @abstractmethod
    def attendance(self, scene: Scene) -> Attendance:
        """Which clients attend each session.

        Raises:
            ConfigError: a session would have no client.
        """


def churn(presence: Presence, unit: Unit, scene: Scene) -> Churn:
    """Clients that join and leave by ``presence``, whose times are in ``unit``.

    Raises:
        ConfigError: a session would have no client.
    """
    if unit == "rounds":
        check_sessions_by_rounds(presence, scene.sessions, scene.rounds)
    return Churn(presence, unit, scene.rounds, scene.clock)
