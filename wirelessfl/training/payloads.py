"""What clients send, and what the nodes receive of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.submodels.merging import covered_mean


@dataclass(frozen=True)
class Payload:
    """One thing that clients send.

    Args:
        name: key under which the client's rule returns it and the server finds it.
        each: the server needs every client's own; otherwise their weighted mean is enough.
        unit: in whose multiples an analog uplink sends it: ``lr``, the clients' step size, for
            accumulated gradients (21), or None for the number itself. Noise enters in proportion
            to it. For another unit override ``Algorithm.unit``.
        senders: all clients of a round, or only those chosen to track (``tracking_clients``).

    Raises:
        ValueError: unit is something else.
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
    """What the nodes have received in one upload.

    Args:
        mean: by payload, weighted means over those of each node's clients that sent it,
            [nodes, P]; zero where none did.
        each: by payload that is needed one by one, [clients, P]; else nothing.
        clients: [clients], who sent.
        node: [clients], to which node.
        metrics: what the uplink has to say of this upload, e.g. its error; it goes into the rows.
        local_steps: H, steps that each sender took.
        share: by payload, [nodes, 1]: the weight of those who sent it over that of all registered
            clients of the node. Times the mean it is a sum over all of them. Where clients train
            submodels of their own, [nodes, P]: of those who sent that coordinate.
        staleness: [clients], merges of the model between what each was sent and now; None where
            all were sent the present model.
        weights: [clients], of each in its node's means.
        covers: [clients, P] boolean, which coordinates each has trained, for algorithms that need
            payloads one by one; None where all have trained all.
        remembered: what the server remembers of each, [clients, P] by the names in the algorithm's
            ``remembers``; zeros at first.
    """

    mean: Mapping[str, Tensor]
    each: Mapping[str, Tensor]
    clients: IntArray
    node: IntArray
    metrics: Mapping[str, float] = field(default_factory=dict)
    local_steps: int = 1
    share: Mapping[str, Tensor] = field(default_factory=dict)
    staleness: IntArray | None = None
    weights: Sequence[float] = ()
    covers: Tensor | None = None
    remembered: Mapping[str, Tensor] = field(default_factory=dict)

    def mean_of(self, values: Tensor) -> Tensor:
        """Means [nodes, P] over those of each node's clients that cover a coordinate; 0 for none.

        Args:
            values: [clients, P].
        """
        nodes = len(next(iter(self.mean.values())))
        total, weight = (values.new_zeros(nodes, values.shape[1]) for _ in range(2))
        for row, (node, share) in enumerate(zip(self.node.tolist(), self.weights, strict=True)):
            there = 1.0 if self.covers is None else self.covers[row].to(values.dtype)
            total[node] += share * there * values[row]
            weight[node] += share * there
        return covered_mean(total, weight, 0.0)
