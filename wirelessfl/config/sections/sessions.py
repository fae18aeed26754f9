"""Settings of sessions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wirelessfl.config.sections.base import Section


class SessionsSection(Section):
    """Sessions of ``rounds`` rounds each; clients join and leave between them."""

    sessions: int | None = Field(
        None, ge=1, description="S, number of sessions of --rounds rounds (default: none)"
    )
    tested_labels: Literal["present", "all"] = Field(
        "present", description="test samples: only labels of present clients, or all"
    )
