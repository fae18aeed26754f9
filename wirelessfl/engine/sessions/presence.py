"""Availability models: groups by labels in turn, random arrivals and stays, or a recorded trace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import guard, implementing, instance, returns
from wirelessfl.base.needs import SESSIONS, Fits, Needs
from wirelessfl.base.registry import Choice, Kind
from wirelessfl.data.label_groups import LabelGroups, label_groups
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.sessions.attendance import Attendance, Churn, GroupsInTurn, Unit
from wirelessfl.engine.sessions.processes import (
    Arrivals,
    Presence,
    check_clients,
    check_sessions_by_rounds,
)
from wirelessfl.engine.sessions.traces import read_trace


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

    name = "presence-model"

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
    """Create the attendance of clients with times of ``presence`` in ``unit``."""
    guard(type(presence), Presence)
    check_clients("presence", presence, "initial", presence.initial(), scene.clients)
    if unit == "rounds":
        check_sessions_by_rounds(presence, scene.sessions, scene.rounds)
    return Churn(presence, unit, scene.rounds, scene.clock)


def _split_by_labels(run: Any) -> bool:
    presence = run.settings.presence
    return presence is not None and run.sessions is not None and presence.by_labels


BY_LABELS = (
    Fits(
        lambda run, _: not (_split_by_labels(run) and run.settings.split.by_groups),
        "conflicts with split={run.settings.tables[split][name]}, since it deals out samples by "
        "their labels: choose another split, or presence arrivals or trace",
    ),
    Fits(
        lambda run, _: not _split_by_labels(run) or run.settings.given.split is None,
        "conflicts with split=..., since it splits the data into groups of labels itself: choose "
        'presence "arrivals" or "trace", or leave split out',
    ),
)
PRESENCES: Kind[PresenceModel] = Kind(
    "presence",
    __name__,
    PresenceModel,
    default="labels",
    needs=SESSIONS,
    table=BY_LABELS,
    text="client availability model",
    heading="sessions",
)
"""All availability models of clients."""


@dataclass(frozen=True)
class RandomArrivals(PresenceModel):
    """Poisson arrivals and exponential stays."""

    name = "arrivals"

    arrival_rate: Annotated[
        float | None, Field(gt=0, description="client arrivals per --presence-unit (required)")
    ] = None
    mean_stay: Annotated[
        float | None,
        Field(gt=0, description="mean of the exponential stays, in --presence-unit (required)"),
    ] = None
    initially_present: Annotated[
        int | None,
        Field(ge=0, description="clients present at the start (default: arrival rate x mean stay)"),
    ] = None
    presence_unit: Annotated[
        Literal["seconds", "rounds"], Field(description="unit of arrival times and stays")
    ] = "seconds"

    def check(self, sessions: int, clients: int | None) -> None:
        """Raise an error if rate or stay are missing, or ``initially_present`` is too large."""
        for key in ("arrival_rate", "mean_stay"):
            if vars(self)[key] is None:
                raise ConfigError(f"presence is 'arrivals', which needs {key}: give it.")
        present = self.initially_present
        if present is not None and clients is not None and present > clients:
            raise ConfigError(
                f"initially_present is {present}, and there are {clients} clients: lower it."
            )

    def attendance(self, scene: PresenceScene) -> Attendance:
        """Clients that join and leave at random."""
        assert self.arrival_rate is not None
        assert self.mean_stay is not None
        process = Arrivals(
            scene.clients, self.arrival_rate, self.mean_stay, self.initially_present, scene.stream
        )
        return churn(process, self.presence_unit, scene)


@dataclass(frozen=True)
class Labels(PresenceModel):
    """Groups of clients with different label sets attend sessions in turn (Chang et al.)."""

    name = "labels"

    by_labels: ClassVar[bool] = True

    overlap: Annotated[
        float, Field(ge=0, le=1, description="fraction of labels shared by consecutive groups")
    ] = 0.0
    shared_labels: Annotated[
        Literal["split", "both"],
        Field(description="samples of shared labels: half for each group, or all for both"),
        Needs(lambda run, owner: owner.overlap, "needs overlap above 0: set it"),
    ] = "split"
    unseen_labels: Annotated[
        int,
        Field(ge=0, description="labels of a third group, which attends only the last session"),
    ] = 0

    @property
    def shared(self) -> Literal["split", "both"]:
        """How samples with shared labels are assigned."""
        return self.shared_labels

    def groups(self, classes: int, cell_of: IntArray) -> LabelGroups:
        """Create the groups."""
        return label_groups(
            classes, cell_of, overlap=self.overlap, unseen_labels=self.unseen_labels
        )

    def check(self, sessions: int, clients: int | None) -> None:
        """Raise an error if there are fewer sessions than groups."""
        groups = 3 if self.unseen_labels else 2
        if sessions < groups:
            third = f", unseen_labels is {self.unseen_labels}" if groups == 3 else ""
            raise ConfigError(
                f"sessions is {sessions}{third}, and presence is 'labels', whose {groups} groups "
                f"of clients attend in turn. Use at least {groups} sessions, or choose presence "
                "arrivals or trace."
            )

    def attendance(self, scene: PresenceScene) -> Attendance:
        """One group per session."""
        assert scene.groups is not None, "the split was made for them"
        return GroupsInTurn(scene.groups, scene.sessions)


@dataclass(frozen=True)
class RecordedTrace(PresenceModel):
    """Clients join and leave as recorded in a file."""

    name = "trace"

    trace: Annotated[
        Path | None,
        Field(description="CSV file with the columns client, join, leave (required)"),
    ] = None
    presence_unit: Annotated[
        Literal["seconds", "rounds"], Field(description="unit of the trace's times")
    ] = "seconds"

    def check(self, sessions: int, clients: int | None) -> None:
        """Raise an error if no trace is given."""
        if self.trace is None:
            raise ConfigError("presence is 'trace', which needs trace: give it.")

    def attendance(self, scene: PresenceScene) -> Attendance:
        """Clients that join and leave as recorded."""
        assert self.trace is not None
        return churn(read_trace(self.trace, scene.clients), self.presence_unit, scene)


__all__ = ["PRESENCES", "PresenceModel", "PresenceScene"]
