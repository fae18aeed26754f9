"""Settings of evaluation."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from wirelessfl.config.sections.section import Section
from wirelessfl.errors import ConfigError
from wirelessfl.import_paths import absolute
from wirelessfl.needs import SESSIONS, Needs, beside

WITHIN = Needs(
    lambda run, _: run.schedule.work != "rounds",
    'conflicts with schedule "{run.schedule.title}", which evaluates after whole rounds: choose '
    'eval_every or schedule "buffered"',
)
FIRST = (
    SESSIONS[1],
    Needs(
        lambda run, own: (own.eval_every or 1) > 1,
        "conflicts with eval_every=1, which evaluates every round: raise eval_every",
    ),
)
SAME_LABELS = Needs(
    lambda run, _: run.sessions is None,
    "conflicts with sessions, which test other labels in each session",
)
STOP = (
    SAME_LABELS,
    Needs(
        lambda run, _: not run.regime.of_tasks,
        'conflicts with schedule "{run.schedule.title}", under which a task always ends at its '
        "target",
    ),
    beside("target"),
)


def listed(given: Any) -> Any:
    """Parse a list, or a comma-separated string, of names; return other values unchanged."""
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return given
    found = (absolute(part.strip()) for name in names for part in name.split(","))
    return tuple(dict.fromkeys(name for name in found if name)) or given


class EvaluationSection(Section):
    """When models are evaluated, what is measured, and the target."""

    eval_every: int | None = Field(
        None,
        ge=1,
        description="rounds or merges between evaluations (default: 1 round or 20 merges)",
    )
    eval_seconds: Annotated[float | None, WITHIN] = Field(
        None,
        ge=1e-6,
        description="simulated seconds between evaluations (default: none)",
    )
    eval_first: Annotated[int, FIRST] = Field(
        0,
        ge=0,
        description="rounds at the start of each session that are always evaluated",
    )
    target: float | None = Field(
        None,
        description="target accuracy (on validation samples, if any), or value of --monitor: the "
        "summary reports the cost of reaching it, and a task ends when it reaches it",
    )
    stop_at_target: Annotated[bool, STOP] = Field(
        False,
        description="end the run with the first evaluation that reaches the target",
    )
    metric: Annotated[tuple[str, ...] | None, BeforeValidator(listed)] = Field(
        None,
        description="further metrics of rows, e.g. macro-f1,my_module:my_metric",
    )
    monitor: str | None = Field(
        None,
        description="field of rows that the target refers to (default: accuracy)",
    )
    patience: Annotated[int | None, SAME_LABELS] = Field(
        None,
        ge=1,
        description="evaluations without improvement until the end (default: never)",
    )
    min_delta: Annotated[float, SAME_LABELS, beside("patience")] = Field(
        0.0, ge=0, description="smallest change that counts as an improvement"
    )

    @field_validator("monitor")
    @classmethod
    def _field(cls, monitor: str | None) -> str | None:
        # The metric macro-f1 is the field macro_f1.
        return None if monitor is None else monitor.replace("-", "_")

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        accuracy = self.monitor is None or self.monitor.endswith("accuracy")
        if self.target is not None and accuracy and not 0 < self.target <= 1:
            raise ConfigError(
                f"target is {self.target:g}: give a number > 0 and <= 1, or name the "
                "field that it refers to by monitor."
            )
        return self
