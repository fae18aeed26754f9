"""Latency models of requests and of rounds of tasks, one per file.

Files in this folder are discovered automatically.
"""

from wirelessfl.needs import ONE_SERVER, TASKS
from wirelessfl.registry import Kind
from wirelessfl.tasks.delays.delay_model import DelayModel, DelayScene, TaskCosts
from wirelessfl.tasks.delays.durations import (
    PUBLISHED_STEP_SECONDS,
    Delays,
    Elements,
    ShiftedExponential,
    StepSeconds,
    Wireless,
    client_speeds,
)

DELAYS: Kind[DelayModel] = Kind(
    "delays",
    __name__,
    DelayModel,
    default="wireless",
    needs=(ONE_SERVER, TASKS),
    text="latency model of requests",
    heading="schedule",
)
"""All latency models of training requests."""

__all__ = [
    "DELAYS",
    "PUBLISHED_STEP_SECONDS",
    "DelayModel",
    "DelayScene",
    "Delays",
    "Elements",
    "ShiftedExponential",
    "StepSeconds",
    "TaskCosts",
    "Wireless",
    "client_speeds",
]
