"""What a client's update rule sees: the cohort it trains in, and the payloads it sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from wirelessfl.submodels.partition import IntArray

State = dict[str, Tensor]
"""Tensors by name: [clients, P] on clients, [P] at a server."""


@dataclass(frozen=True)
class Cohort:
    """Clients that train together; everything has them on its leading axis.

    A rule sees no client's number: on a GPU the same operations are replayed for other clients.

    Args:
        server: what their server sent them, [clients, P] by name: ``params`` and, where the
            algorithm keeps more at the server, that.
        local_steps: H, steps that each takes.
    """

    server: Mapping[str, Tensor]
    local_steps: int

    @property
    def start(self) -> Tensor:
        """Parameters [clients, P] that each client was sent."""
        return self.server["params"]


@dataclass(frozen=True)
class Payload:
    """One thing that every client sends.

    Args:
        name: key under which the client's rule returns it and the server finds it.
        each: the server needs every client's own; otherwise their weighted mean is enough.
        unit: the algorithm's setting in whose multiples an analog uplink sends it, e.g. ``lr`` for
            accumulated gradients (21). Noise enters in proportion to it. None: as it is.
    """

    name: str
    each: bool = False
    unit: str | None = None


@dataclass(frozen=True)
class Received:
    """What the nodes have received in one upload.

    Args:
        mean: by payload, weighted means over each node's clients, [nodes, P].
        each: by payload that is needed one by one, [clients, P]; else nothing.
        clients: [clients], who sent.
        node: [clients], to which node.
        metrics: what the uplink has to say of this upload, e.g. its error; it goes into the rows.
    """

    mean: Mapping[str, Tensor]
    each: Mapping[str, Tensor]
    clients: IntArray
    node: IntArray
    metrics: Mapping[str, float] = field(default_factory=dict)
