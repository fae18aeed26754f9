"""The sections of a configuration: every setting of a run but those of choices."""

from __future__ import annotations

from wirelessfl.config.course import (
    EvaluationSection,
    RunSection,
    SessionsSection,
    TrainingSection,
)
from wirelessfl.config.section import Section, refuse_bool
from wirelessfl.config.study import DataSection, ModelSection, NetworkSection

PLACES = ("out", "data_dir")
"""Settings that say where things are, and do not tell runs apart."""
FOR_TASKS = {
    "network": ("delays", "delay_scale", "availability", "busy_clients", "drop_out"),
    "evaluation": ("eval_seconds",),
}
"""Settings of algorithms for several tasks."""
SECTIONS: dict[str, type[Section]] = {
    "data": DataSection,
    "model": ModelSection,
    "network": NetworkSection,
    "training": TrainingSection,
    "sessions": SessionsSection,
    "evaluation": EvaluationSection,
    "run": RunSection,
}

__all__ = [
    "FOR_TASKS",
    "PLACES",
    "SECTIONS",
    "DataSection",
    "EvaluationSection",
    "ModelSection",
    "NetworkSection",
    "RunSection",
    "Section",
    "SessionsSection",
    "TrainingSection",
    "refuse_bool",
]
