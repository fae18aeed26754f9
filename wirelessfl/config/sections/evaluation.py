"""Settings of evaluation."""

from __future__ import annotations

from pydantic import Field

from wirelessfl.config.sections.base import Section


class EvaluationSection(Section):
    """When models are evaluated, and the target accuracy."""

    eval_every: int | None = Field(
        None,
        ge=1,
        description="rounds or merges between evaluations (default: 1 round or 20 merges)",
    )
    eval_seconds: float | None = Field(
        None,
        ge=1e-6,
        description="simulated seconds between evaluations (default: none)",
    )
    eval_first: int = Field(
        0,
        ge=0,
        description="rounds at the start of each session that are always evaluated",
    )
    target: float | None = Field(
        None,
        gt=0,
        le=1,
        description="target accuracy (on validation samples, if any): the summary reports the cost "
        "of reaching it, and a task ends when it reaches it",
    )
    stop_at_target: bool = Field(
        False,
        description="end the run with the first evaluation that reaches the target",
    )
    patience: int | None = Field(
        None,
        ge=1,
        description="evaluations without improvement until the end (default: never)",
    )
    min_delta: float = Field(0.0, ge=0, description="smallest change that counts as an improvement")
