"""Latency from CPU cycles and a shared uplink."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.tasks.delays.delay_model import DelayModel, DelayScene
from wirelessfl.tasks.delays.durations import Delays, Wireless


@dataclass(frozen=True)
class WirelessDelays(DelayModel):
    """Local steps at each client's CPU speed, then an upload over a shared band."""

    def build(self, scene: DelayScene) -> Delays:
        """Create durations from the network's CPU speeds and channels."""
        return Wireless(
            scene.network,
            scene.uplink,
            [task.steps for task in scene.tasks],
            [task.seconds for task in scene.tasks],
            [task.elements for task in scene.tasks],
            scene.downlink_bps,
            scene.stream.child("uploads"),
        )
