"""Latency models of requests and of rounds of tasks, one per file.

Files in this folder are discovered automatically.
"""

from wirelessfl.needs import ONE_SERVER, TASKS, Fits
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

TWO_TIMES = Fits(
    lambda run, _: run.radio or run.uplink.gives != "sum",
    'conflicts with uplink "{run.settings.tables[uplink][name]}": it draws one time for training '
    "and upload, but clients send at the same time under schedule "
    '"{run.settings.tables[schedule][name]}". Choose delays "wireless", or uplink "tdma", "ofdma" '
    'or "fixed"',
)
DELAYS: Kind[DelayModel] = Kind(
    "delays",
    __name__,
    DelayModel,
    default="wireless",
    needs=(ONE_SERVER, TASKS),
    table=(TWO_TIMES,),
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
