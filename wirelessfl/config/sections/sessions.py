"""Settings of sessions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.config.sections.section import Section
from wirelessfl.needs import SESSIONS, Needs
from wirelessfl.schedules import Rounds

BUILT_IN = Needs(
    lambda run, _: run.schedule is Rounds,
    'conflicts with schedule "{run.schedule.title}", which does not support sessions: choose '
    'schedule "rounds"',
)


class SessionsSection(Section):
    """Sessions of ``rounds`` rounds each; clients join and leave between them."""

    sessions: Annotated[int | None, SESSIONS[0], BUILT_IN] = Field(
        None, ge=1, description="S, number of sessions of --rounds rounds (default: none)"
    )
    tested_labels: Annotated[Literal["present", "all"], SESSIONS[1]] = Field(
        "present", description="test samples: only labels of present clients, or all"
    )
