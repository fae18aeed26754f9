"""Recorded presence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.errors import ConfigError
from wirelessfl.sessions.attendance import Attendance
from wirelessfl.sessions.presence.presence_model import PresenceModel, PresenceScene, churn
from wirelessfl.sessions.traces import read_trace


@dataclass(frozen=True)
class RecordedTrace(PresenceModel):
    """Clients join and leave as recorded in a file.

    Args:
        trace: CSV file with the columns client, join, leave; required.
        presence_unit: unit of the trace's times.
    """

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
