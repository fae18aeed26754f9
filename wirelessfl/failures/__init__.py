"""Failures of uploads, one model per file. Files in this folder are discovered automatically."""

from __future__ import annotations

from wirelessfl.failures.failures import Failing, Failures
from wirelessfl.needs import CHANNEL, Needs
from wirelessfl.registry import Kind

PACKETS = (
    Needs(
        lambda run, _: not run.regime.of_tasks,
        'conflicts with schedule "{run.schedule.title}": set drop_out, or choose schedule "rounds"',
    ),
    Needs(
        lambda run, _: run.uplink.gives != "sum",
        'conflicts with uplink "{run.uplink.title}", which sends no packets: choose uplink "tdma"',
    ),
    CHANNEL,
)
FAILURES: Kind[Failures] = Kind(
    "failures",
    __name__,
    Failures,
    default="none",
    needs=PACKETS,
    text="uploads that fail",
    heading="uplink",
)
"""All models of uploads that fail."""

__all__ = ["FAILURES", "Failing", "Failures"]
