"""An upload to the nodes of a server: who sends, over which air, and what a merge learns of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from channels import ChannelDraw
from channels.arrays import BoolArray, IntArray
from channels.streams import Name, Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.training.payloads import Received
from wirelessfl.uplinks import AirRound, Uplink
from wirelessfl.uplinks.base import Reception


@dataclass(frozen=True, eq=False)
class Senders:
    """Clients whose payloads are merged together, and how they have trained.

    Args:
        clients: [senders], their numbers; those of a node stand together.
        rule: the algorithm, with the step size that they trained with.
        local_steps: H, steps that each has taken.
        stream: randomness of their uploads.
        tracking: [senders], who sends what only trackers send; None: all.
        staleness: [senders], merges between the model that each was sent and now; None: none.
    """

    clients: IntArray
    rule: Algorithm
    local_steps: int
    stream: Stream
    tracking: BoolArray | None = None
    staleness: IntArray | None = None

    @property
    def payloads(self) -> list[str]:
        """Names of all that they send."""
        return [payload.name for payload in self.rule.payloads]


@dataclass(frozen=True, eq=False)
class Upload:
    """What some clients send to the nodes of a server, once or in several edge rounds.

    Args:
        senders: the clients.
        uplink: how their payloads cross the air.
        air: what the uplink is told.
        share: by payload, [nodes, 1], weight of its senders over that of all clients present.
    """

    senders: Senders
    uplink: Uplink
    air: AirRound
    share: Mapping[str, Tensor]

    def exchanging(self, elements: Tensor | None) -> Upload:
        """The same where only these elements [nodes, P] are exchanged; None: all."""
        return replace(self, air=replace(self.air, exchanged=elements))

    def open(self, *names: Name, draw: ChannelDraw | None = None) -> Reception:
        """Begin to receive.

        Args:
            names: of its randomness, below the senders' stream.
            draw: the channels at this time; None where each client uploads at a time of its own.
        """
        stream = self.air.stream.child(*names)
        return self.uplink.receive(replace(self.air, draw=draw, stream=stream))

    def received(self, reception: Reception) -> Received:
        """What the nodes have received, with what an algorithm may want to know of the senders."""
        return replace(
            reception.result(),
            local_steps=self.senders.local_steps,
            share=self.share,
            weights=self.air.weights.tolist(),
            staleness=self.senders.staleness,
        )
