"""Settings of clients that join and leave."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wirelessfl.config.sections.base import Section


class SessionsSection(Section):
    """Clients that join and leave: sessions of ``rounds`` rounds with the clients then present."""

    sessions: int | None = Field(
        None, ge=1, description="S, sessions of --rounds rounds each (default: none)"
    )
    tested_labels: Literal["present", "all"] = Field(
        "present", description="test samples: those with labels of present clients, or all"
    )
