"""Settings of clients that join and leave."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from wirelessfl.config.sections.base import Section


class SessionsSection(Section):
    """Clients that join and leave: sessions of --rounds rounds, and the clients present in each."""

    sessions: int | None = Field(
        None, ge=1, description="S, sessions of --rounds rounds each (default: none)"
    )
    presence: Literal["labels", "arrivals", "trace"] = Field(
        "labels",
        description="clients present: groups with different label sets in turn "
        "(labels), random arrivals and stays (arrivals), or as recorded (trace)",
    )
    overlap: float = Field(
        0.0, ge=0, le=1, description="of labels: share that the sets of two sessions in turn share"
    )
    shared_labels: Literal["split", "both"] = Field(
        "split",
        description="samples of labels in both sets: half for each, or all of them for both",
    )
    unseen_labels: int = Field(
        0, ge=0, description="labels of a third group, there in the last session only"
    )
    arrival_rate: float | None = Field(
        None, gt=0, description="of arrivals: clients that arrive per --presence-unit"
    )
    mean_stay: float | None = Field(
        None, gt=0, description="of arrivals: mean of the exponential stays, in --presence-unit"
    )
    initially_present: int | None = Field(
        None,
        ge=0,
        description="of arrivals: clients present at first (default: rate times mean stay)",
    )
    trace: Path | None = Field(
        None, description="of trace: CSV file with the columns client, join, leave"
    )
    presence_unit: Literal["seconds", "rounds"] = Field(
        "seconds", description="unit of times, of arrivals and trace"
    )
    tested_labels: Literal["present", "all"] = Field(
        "present", description="test samples: those with labels of clients present, or all"
    )
