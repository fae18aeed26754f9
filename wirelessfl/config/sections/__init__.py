"""The sections of a configuration: every setting of a run but those of choices."""

from __future__ import annotations

from wirelessfl.config.sections.base import Section, refuse_bool
from wirelessfl.config.sections.data import DataSection
from wirelessfl.config.sections.evaluation import EvaluationSection
from wirelessfl.config.sections.model import ModelSection
from wirelessfl.config.sections.network import NetworkSection
from wirelessfl.config.sections.run import RunSection
from wirelessfl.config.sections.sessions import SessionsSection
from wirelessfl.config.sections.training import TrainingSection

PLACES = ("out", "data_dir")
"""Settings that say where things are, and do not tell runs apart."""
OF_REQUESTS = ("delays", "delay_scale", "availability", "busy_clients", "drop_out")
"""Network settings of requests to clients, and of rounds of tasks."""
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
    "OF_REQUESTS",
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
