"""Payloads: the vectors that clients send, and the result of an upload at the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from channels.arrays import IntArray
from wirelessfl.models.submodels.extract import covered_mean


@dataclass(frozen=True)
class Payload:
    """A named vector that clients send.

    Args:
        name: key in the client rule's results and in the tensors of :class:`Received`.
        each: whether the server needs each client's vector; otherwise their weighted mean is
            sufficient.
        unit: unit in which an analog uplink sends the payload; noise is proportional to it.
            ``lr``, the clients' step size, is the unit of accumulated gradients, (21) of HIST; None
            means 1. For another unit, override ``Algorithm.unit``.
        senders: ``all`` clients of a round, or only its ``tracking`` clients
            (``tracking_clients``).

    Raises:
        ValueError: the unit is unknown.
    """

    name: str
    each: bool = False
    unit: Literal["lr"] | None = None
    senders: Literal["all", "tracking"] = "all"

    def __post_init__(self) -> None:
        if self.unit not in ("lr", None):
            raise ValueError(
                f"unit of payload {self.name!r} is {self.unit!r}: choose 'lr' or None, or override "
                "the algorithm's unit."
            )


@dataclass(frozen=True)
class Received:
    """The result of one upload, as received by the nodes.

    Args:
        mean: by payload, weighted mean over the clients of each node that sent it, [nodes, P]; zero
            if none did.
        each: individual vectors [clients, P] of the payloads that have ``each`` set.
        clients: [clients], indices of the senders.
        node: [clients], node of each sender.
        metrics: measurements of the uplink for this upload, e.g. its error, for the result rows.
        local_steps: H, local steps of each sender; their mean if they differ.
        share: by payload, [nodes, 1], weight of its senders divided by the weight of all registered
            clients of the node. ``share * mean`` is the senders' weighted sum divided by the weight
            of all registered clients. If clients train submodels: [nodes, P], because the senders
            then differ by coordinate.
        staleness: [clients], number of merges since the model that each client received; None if
            all received the current model.
        weights: [clients], weight of each client in its node's means.
        covers: [clients, P] boolean, coordinates that each client trained, for algorithms that need
            individual payloads; None if all clients trained all coordinates.
        remembered: the server's memory of each client, [clients, P] by the names in the algorithm's
            ``remembers``; initially zeros.
    """

    mean: Mapping[str, torch.Tensor]
    each: Mapping[str, torch.Tensor]
    clients: IntArray
    node: IntArray
    metrics: Mapping[str, float] = field(default_factory=dict)
    local_steps: float = 1
    share: Mapping[str, torch.Tensor] = field(default_factory=dict)
    staleness: IntArray | None = None
    weights: Sequence[float] = ()
    covers: torch.Tensor | None = None
    remembered: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def mean_of(self, values: torch.Tensor) -> torch.Tensor:
        """Weighted means [nodes, P] over the clients of each node that cover a coordinate.

        A coordinate that no client covers is 0.

        Args:
            values: [clients, P].
        """
        nodes = len(next(iter(self.mean.values())))
        total, weight = (values.new_zeros(nodes, values.shape[1]) for _ in range(2))
        for row, (node, share) in enumerate(zip(self.node.tolist(), self.weights, strict=True)):
            covered = 1.0 if self.covers is None else self.covers[row].to(values.dtype)
            total[node] += share * covered * values[row]
            weight[node] += share * covered
        return covered_mean(total, weight, 0.0)
