"""Groups of clients with different labels, one group per session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from channels.arrays import IntArray
from wirelessfl.data.label_groups import LabelGroups, label_groups
from wirelessfl.errors import ConfigError
from wirelessfl.needs import Needs
from wirelessfl.sessions.attendance import Attendance, GroupsInTurn
from wirelessfl.sessions.presence.presence_model import PresenceModel, PresenceScene


@dataclass(frozen=True)
class Labels(PresenceModel):
    """Groups of clients with different label sets attend sessions in turn (Chang et al.).

    Args:
        overlap: fraction of labels that consecutive groups share.
        shared_labels: whether the samples of shared labels are halved between the two groups, or
            all of them go to both.
        unseen_labels: number of labels of a third group, which attends only the last session.
    """

    by_labels: ClassVar[bool] = True

    overlap: Annotated[
        float, Field(ge=0, le=1, description="fraction of labels shared by consecutive groups")
    ] = 0.0
    shared_labels: Annotated[
        Literal["split", "both"],
        Field(description="samples of shared labels: half for each group, or all for both"),
        Needs(lambda run, own: own.overlap, "needs overlap above 0: set it"),
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
