"""The sections of a configuration: all settings that do not belong to a choice."""

from __future__ import annotations

from wirelessfl.config.sections.data import DataSection
from wirelessfl.config.sections.evaluation import EvaluationSection
from wirelessfl.config.sections.network import NetworkSection
from wirelessfl.config.sections.run import RunSection
from wirelessfl.config.sections.section import Section, read_value, types_in
from wirelessfl.config.sections.sessions import SessionsSection
from wirelessfl.config.sections.training import TrainingSection

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
    "read_value",
    "types_in",
]
