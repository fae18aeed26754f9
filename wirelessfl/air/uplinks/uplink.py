"""The interface of an uplink: what the server receives, and the seconds and joules of an upload.

An uplink does not depend on models: it transmits numbers ("elements") from clients to their nodes.
Its dataclass fields are its settings, as for an algorithm.

What uplinks need from the algorithm, the schedule and the latency model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from channels import Access, ChannelDraw
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.base.guard import UnfitError, described, instance, number, returns, whole
from wirelessfl.base.needs import Suits
from wirelessfl.base.registry import Choice
from wirelessfl.base.rows import BITS_PER_ELEMENT
from wirelessfl.base.wording import public_path
from wirelessfl.training.rules import Received
from wirelessfl.training.workers.shards import Shards

Coherence = Literal["round", "edge-round"]


@dataclass(frozen=True)
class Transmission:
    """One upload of clients to their nodes, which is merged in one step.

    Args:
        nodes: number of nodes.
        node: [clients], node of each sender; senders of a node are consecutive.
        clients: [clients], client numbers in the network.
        weights: [clients], weights of the mean at each node, > 0; see ``weights_of``.
        each: payloads that the algorithm needs from each client, not only as a mean.
        units: by payload, the unit that an analog uplink divides it by; 1 if missing.
        stream: random stream of this upload.
        exchanged: [nodes, elements] boolean, elements that the clients of a node send; None for
            all.
        lengths: [clients], number of elements that each client sends; None if it sends all that its
            node exchanges.
        draw: channel draw that includes these clients; None if they upload at different times.
        beamformers: [nodes, antennas], receive beamformers of the plan, for the case that all
            clients send; None if there are none.
        silent: by payload, [clients] boolean, clients that do not send it; all clients send the
            payloads that are missing here.
        pilot_symbols: pilot symbols from which the server estimates each client's channel.
    """

    nodes: int
    node: IntArray
    clients: IntArray
    weights: FloatArray
    each: frozenset[str]
    units: Mapping[str, float]
    stream: Stream
    exchanged: torch.Tensor | None = None
    lengths: IntArray | None = None
    draw: ChannelDraw | None = None
    beamformers: ComplexArray | None = None
    silent: Mapping[str, BoolArray] = field(default_factory=dict)
    pilot_symbols: int = 0

    def weights_of(self, payload: str) -> FloatArray:
        """Weights [clients] of the mean of ``payload``; they sum to 1 at each node with senders."""
        if payload not in self.silent:
            return self.weights
        weights = np.where(self.silent[payload], 0.0, self.weights)
        sums = np.bincount(self.node, weights, self.nodes)
        return np.asarray(weights / np.where(sums > 0, sums, 1.0)[self.node])

    def on_the_air(self, part: slice | IntArray, updates: torch.Tensor) -> torch.Tensor:
        """Updates [rows, elements] of the clients in ``part``, 0 at elements that are not sent."""
        if self.exchanged is None:
            return updates
        return updates * self.exchanged[self.node[part]]

    def fill(self, node: IntArray | int) -> FloatArray:
        """Factor that converts a root mean square over all elements to one over sent elements."""
        if self.exchanged is None:
            return np.ones(())
        elements = self.exchanged.shape[1]
        counts: FloatArray = self.exchanged.sum(1).double().cpu().numpy()
        return np.asarray(np.sqrt(elements / np.maximum(counts, 1))[node])


def _received(value: Any, reception: Reception) -> Received:
    """Check for the means of all nodes."""
    received: Received = instance(Received)(value)
    for name, mean in received.mean.items():
        if (
            not isinstance(mean, torch.Tensor)
            or mean.dim() != 2
            or len(mean) != reception.air.nodes
        ):
            raise UnfitError(
                f"{described(mean)} as the mean of {name!r}",
                f"a mean of shape [{reception.air.nodes} nodes, elements] per payload",
            )
    return received


class Reception:
    """Error-free weighted means, accumulated chunk by chunk, so that only one chunk is in memory.

    Payloads that are needed from each client are stored for all clients.
    """

    def __init__(self, air: Transmission) -> None:
        self.air = air
        self._sums: dict[str, torch.Tensor] = {}
        self._each: dict[str, torch.Tensor] = {}

    def add(self, part: slice | IntArray, payloads: dict[str, torch.Tensor]) -> None:
        """Add the payloads of the clients in ``part``: [clients, elements] by payload."""
        node = self.air.node[part].tolist()
        for name, sent in payloads.items():
            weights = self.air.weights_of(name)[part].tolist()
            if name not in self._sums:
                self._sums[name] = sent.new_zeros(self.air.nodes, sent.shape[1])
            sums = self._sums[name]
            # Client by client, so that the sums do not depend on the chunks.
            for receiver, weight, row in zip(node, weights, sent, strict=True):
                if weight > 0:
                    sums[receiver].add_(row, alpha=weight)
            if name in self.air.each:
                self._held_each(name, sent)[part] = sent

    def finish(self, shards: Shards, payloads: Sequence[str], like: torch.Tensor) -> None:
        """Finish the upload: add the payloads of other processes' clients.

        Args:
            shards: the processes; each has added its own clients.
            payloads: names of all payloads.
            like: [nodes, elements], gives the shape in processes without clients.
        """
        for name in payloads:
            if name not in self._sums:
                self._sums[name] = torch.zeros_like(like)
            shards.sum(self._sums[name])
            if name in self.air.each:
                shards.sum(self._held_each(name, like))

    def _held_each(self, name: str, like: torch.Tensor) -> torch.Tensor:
        """Buffer [clients, elements] of a payload; rows are 0 until the client has sent."""
        if name not in self._each:
            self._each[name] = like.new_zeros(len(self.air.clients), like.shape[1])
        return self._each[name]

    @returns(_received)
    def result(self) -> Received:
        """Received payloads."""
        return Received(self._sums, self._each, self.air.clients, self.air.node)


@dataclass(frozen=True)
class Uplink(Choice, ABC):
    """Base class of all uplinks."""

    name = "uplink"

    gives: ClassVar[Literal["each", "sum"]] = "each"
    """Whether a node receives each client's payload, or only the weighted sum."""
    coherence: ClassVar[Coherence] = "round"
    """Default coherence interval of the channel; the network's settings can override it."""
    radio: ClassVar[bool] = True
    """Whether uploads cross the network's radio channel."""

    @property
    @returns(instance(Access))
    @abstractmethod
    def access(self) -> Access:
        """Who gets which part of the air: seconds and joules of uploads follow from it."""

    @property
    def equal_shares(self) -> Access | None:
        """Equal shares at full power and speed, for an access that decides; None without.

        Rows and summaries compare seconds and joules with those of this access.
        """
        return None

    @property
    def sizing(self) -> Access:
        """The access whose seconds decide about submodel sizes."""
        return self.access

    @property
    def deadline_check(self) -> Access | None:
        """An access that only raises where rounds miss a deadline; None if they cannot.

        Rounds are checked with it before training.
        """
        return None

    @property
    def deadline_seconds(self) -> float | None:
        """When each global round must have ended, in seconds from its start; None for no limit."""
        return None

    @property
    @returns(number(above=True, or_none=True))
    def downlink_bps(self) -> float | None:
        """Default downlink rate per client, in bit/s; None if the downlink takes no time."""
        return None

    @property
    @returns(whole(0))
    def side_elements(self) -> int:
        """Extra numbers that a client sends error-free with each payload; their bytes count."""
        return 0

    @property
    @returns(whole(1))
    def element_bits(self) -> int:
        """Bits that an element counts in traffic, unless uploads are compressed."""
        return BITS_PER_ELEMENT

    def silent(self, draws: ChannelDraw) -> BoolArray | None:
        """Clients that send nothing in a block, because their channels are in a fade.

        Args:
            draws: channels of the participating clients, h [blocks, senders, antennas].

        Returns:
            [blocks, senders] boolean; None if all clients send.
        """
        return None

    @returns(instance(Reception))
    def receive(self, air: Transmission) -> Reception:
        """Start an upload; error-free unless a subclass overrides this."""
        return Reception(air)


def _each(run: Any) -> list[str]:
    """Names of the payloads that the algorithm needs from each client."""
    return [payload.name for payload in run.settings.rule.payloads if payload.each]


def _needs_each(run: Any, _: Any) -> str:
    """The message for an uplink that delivers only sums."""
    table = run.settings.tables["algorithm"]
    who = f'local "{table["local"]}"' if "local" in table else f'algorithm "{table["name"]}"'
    return (
        f"{who} needs each client's {' and '.join(_each(run))}, and uplink "
        f'"{run.settings.named("uplink")}" gives only their sum. Choose uplink "tdma", "ofdma" or '
        '"fixed"'
    )


def _without_rates(run: Any, _: Any) -> str:
    """The message for an access that serves whole rounds only."""
    settings = run.settings
    return (
        f'schedule "{settings.named("schedule")}" lets clients upload at any time, but the access '
        f'of uplink "{settings.named("uplink")}", {public_path(type(settings.uplink.access))}, has '
        'no method rates and serves whole rounds only. Choose uplink "tdma", "fixed" or "ofdma" '
        'with allocation "equal", or delays "shifted-exponential"'
    )


DELIVERS = Suits(lambda run, _: run.uplink.gives != "sum" or not _each(run), _needs_each)
"""An uplink that delivers the algorithm's payloads."""
AT_ONE_TIME = Suits(
    lambda run, _: run.uplink.gives != "sum" or run.radio,
    'delays="{run.settings.tables[delays][name]}" conflicts with uplink '
    '"{run.settings.tables[uplink][name]}": it '
    "draws one time for training and upload, but clients send at the same time under schedule "
    '"{run.settings.tables[schedule][name]}". Choose delays "wireless", or uplink "tdma", "ofdma" '
    'or "fixed"',
)
"""A time of sending of its own, if clients send at the same time."""
NO_FAILURES = Suits(
    lambda run, choice: (
        choice.rates != "mcs" or run.settings.failures is None or run.settings.failures.never
    ),
    'rates="mcs" conflicts with failures="{run.settings.failures.title}": it sends lost blocks '
    'again itself. Choose rates "shannon", or failures "none"',
)
"""No other model of lost packets beside that of modulation and coding."""
AT_ANY_TIME = Suits(
    lambda run, _: (
        not run.regime.of_tasks
        or run.uplink.gives == "sum"
        or not run.radio
        or run.settings.uplink.access.asynchronous
    ),
    _without_rates,
)
"""An uplink over which clients can send whenever they are ready."""
