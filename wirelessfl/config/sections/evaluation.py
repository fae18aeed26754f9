"""Settings of when the model is tested."""

from __future__ import annotations

from pydantic import Field

from wirelessfl.config.sections.base import Section


class EvaluationSection(Section):
    """When the model is tested."""

    eval_every: int | None = Field(
        None,
        ge=1,
        description="global rounds, or merges under schedule buffered, between rows (default: 1; "
        "20 under buffered; none with --eval-seconds)",
    )
    eval_seconds: float | None = Field(
        None,
        gt=0,
        description="simulated seconds between rows, under schedules buffered and simultaneous",
    )
    eval_first: int = Field(
        0, ge=0, description="of sessions: so many first rounds of each have a row every round"
    )
    target: float | None = Field(
        None,
        gt=0,
        le=1,
        description="accuracy whose cost the closing table gives; one of several tasks ends there "
        "(on validation samples where --validation-fraction holds some out)",
    )
