"""The sections of a configuration: all settings that do not belong to a choice."""

from __future__ import annotations

from wirelessfl.config.sections.network import NetworkSection
from wirelessfl.config.sections.section import RunSection, Section, frozen
from wirelessfl.config.sections.training import (
    DataSection,
    EvaluationSection,
    SessionsSection,
    TrainingSection,
)

PLACES = ("out", "data_dir")
"""Settings that are paths of output and data."""
WITHOUT_RESULTS = (*PLACES, "keep_best", "predicted", "track")
"""Settings that do not change results; runs that differ only in these are equal."""
SECTIONS: dict[str, type[Section]] = {
    "data": DataSection,
    "network": NetworkSection,
    "training": TrainingSection,
    "sessions": SessionsSection,
    "evaluation": EvaluationSection,
    "run": RunSection,
}

__all__ = [
    "PLACES",
    "SECTIONS",
    "WITHOUT_RESULTS",
    "DataSection",
    "EvaluationSection",
    "NetworkSection",
    "RunSection",
    "Section",
    "SessionsSection",
    "TrainingSection",
    "frozen",
]
