"""An upload to the nodes of a server: senders, uplink and received payloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from channels import ChannelDraw
from channels.arrays import BoolArray, ComplexArray, IntArray
from channels.streams import Name, Stream
from wirelessfl.algorithms.algorithm import Algorithm
from wirelessfl.training.payloads import Received
from wirelessfl.uplinks import AirRound, Uplink
from wirelessfl.uplinks.uplink import Reception


@dataclass(frozen=True, eq=False)
class Senders:
    """Clients whose payloads are merged together, and how they trained.

    Args:
        clients: [senders], client numbers; clients of a node are consecutive.
        rule: the algorithm, with the step size of their training.
        local_steps: H, local steps of each client; their mean if they differ.
        stream: random stream of their uploads.
        tracking: [senders] boolean, clients that send tracking terms; None for all.
        staleness: [senders], merges since each client received its model; None in rounds.
    """

    clients: IntArray
    rule: Algorithm
    local_steps: float
    stream: Stream
    tracking: BoolArray | None = None
    staleness: IntArray | None = None

    @property
    def payloads(self) -> list[str]:
        """Names of the payloads."""
        return [payload.name for payload in self.rule.payloads]


@dataclass(frozen=True, eq=False)
class Upload:
    """Uploads of some clients to the nodes of a server, once or in several edge rounds.

    Args:
        senders: the clients.
        uplink: how their payloads cross the air.
        air: description of an upload for the uplink.
        share: by payload, [nodes, 1], weight of its senders relative to all present clients.
    """

    senders: Senders
    uplink: Uplink
    air: AirRound
    share: Mapping[str, torch.Tensor]

    def exchanging(self, elements: torch.Tensor | None, lengths: IntArray | None = None) -> Upload:
        """Return this upload restricted to these elements [nodes, P]; None for all.

        ``lengths`` [senders] is the number of elements of each sender, see ``AirRound``.
        """
        return replace(self, air=replace(self.air, exchanged=elements, lengths=lengths))

    def open(
        self,
        *names: Name,
        draw: ChannelDraw | None = None,
        beamformers: ComplexArray | None = None,
    ) -> Reception:
        """Start the reception of an upload.

        Args:
            names: path of the upload's random stream below the senders' stream.
            draw: channel draw of this upload; None if clients upload at different times.
            beamformers: [nodes, antennas], receive beamformers of the plan; None if there are none.
        """
        stream = self.air.stream.child(*names)
        air = replace(self.air, draw=draw, stream=stream, beamformers=beamformers)
        return self.uplink.receive(air)

    def received(self, reception: Reception) -> Received:
        """Received payloads, with the facts about the senders that the algorithm needs."""
        return replace(
            reception.result(),
            local_steps=self.senders.local_steps,
            share=self.share,
            weights=self.air.weights.tolist(),
            staleness=self.senders.staleness,
        )
