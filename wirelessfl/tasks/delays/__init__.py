"""Latency models of requests and of rounds of tasks, one per file, found by lying here."""

from wirelessfl.registry import Kind
from wirelessfl.tasks.delays.base import DelayModel, Scene, TaskCosts
from wirelessfl.tasks.delays.durations import (
    PUBLISHED_STEP_SECONDS,
    Delays,
    Elements,
    ShiftedExponential,
    Wireless,
    client_speeds,
)

DELAYS: Kind[DelayModel] = Kind("delays", __name__, DelayModel)
"""How long training requests can take."""

__all__ = [
    "DELAYS",
    "PUBLISHED_STEP_SECONDS",
    "DelayModel",
    "Delays",
    "Elements",
    "Scene",
    "ShiftedExponential",
    "TaskCosts",
    "Wireless",
    "client_speeds",
]
