"""What an algorithm knows when it assigns submodels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from channels import ChannelDraw
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.participants import Participants
from wirelessfl.air.plan import WholeModel
from wirelessfl.air.round_price import Pricing
from wirelessfl.air.uplinks.checked import serving
from wirelessfl.algorithms.assigners.assigner import Durations
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.rounds.mask_sizes import mask_size_problem
from wirelessfl.models.submodels import NeuronMap, ParamSpec, Partition
from wirelessfl.models.submodels.partition import Scheme

D = TypeVar("D", bound=Durations)


@dataclass(frozen=True)
class RoundDurations:
    """Durations of a round of one model, whose participants and channels are known.

    Args:
        pricing: loads and prices of the rounds.
        find_draws: draws the channels of (at least) the participating clients, in blocks.
        who: participating clients.
        number: number of the round, from 0.
        node: cell of each of the clients of ``draws``.
    """

    pricing: Pricing
    find_draws: Callable[[], ChannelDraw]
    who: Participants
    number: int
    node: IntArray

    @classmethod
    def of(
        cls, pricing: Pricing, draws: ChannelDraw, who: Participants, number: int
    ) -> RoundDurations:
        """Durations with known channels."""
        return cls(pricing, lambda: draws, who, number, draws.network.cell_of)

    @cached_property
    def draws(self) -> ChannelDraw:
        """The channels; drawn when durations are asked for."""
        return self.find_draws()

    @property
    def title(self) -> str:
        """The round, from 1."""
        return f"round {self.number + 1}"

    @property
    def remedies(self) -> str:
        """Settings that shorten the round."""
        return "bandwidth_hz or cpu_hz"

    @property
    def coupled(self) -> bool:
        """Whether a client's seconds depend on the loads of the others in its cell."""
        return self.pricing.sizing.coupled

    def seconds_of(self, lengths: IntArray) -> FloatArray:
        """See ``Pricing.seconds_of``."""
        return self.pricing.seconds_of(self.draws, self.who, lengths)

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        """See ``Pricing.client_seconds``."""
        return self.pricing.client_seconds(self.draws, self.who, lengths)

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        """Sizes [nodes] with which the slowest cell ends soonest.

        Args:
            partition: neuron partition of the model.
            cap: largest size over that of equal sizes.
        """
        pricing, draws, who = self.pricing, self.draws, self.who
        node, nodes = draws.network.cell_of, pricing.links.network.cells
        empty = np.bincount(node, minlength=nodes) == 0

        def seconds(sizes: IntArray) -> FloatArray:
            by_cell = pricing.node_seconds(draws, who, partition.lengths(sizes))
            for cell in np.flatnonzero(empty):
                # A cell without a client takes no time, but must get the smallest submodel: count
                # that of the slowest cell with its size.
                same = np.repeat(partition.lengths(sizes[:, cell])[:, None], len(empty), 1)
                by_cell[:, cell] = pricing.node_seconds(draws, who, same).max(-1)
            return by_cell

        with serving(f"{pricing.title}, {self.title}"):
            solution = mask_size_problem(partition, seconds, nodes, size_cap=cap).solve()
        if solution.value is None:
            with serving(f"{pricing.title}, {self.title}"):
                # An access with a deadline explains why cells never end.
                even = partition.lengths(np.full(nodes, partition.width // nodes))
                pricing.sizing.serve(pricing.load(who, even[node]), draws)
            raise ConfigError(
                f"mask sizes: {solution.message}. Raise size_cap, or use fewer cells."
            )
        return [int(size) for size in np.asarray(solution.value)]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What is known when submodels of cells are assigned after a merge.

    Args:
        model: the model to train.
        nodes: number of nodes.
        clients: number of registered clients.
        run_stream: random stream of what stays fixed during the training of the model.
        number: number of the round, from 0, or of merges.
        stream: random stream of this round or merge.
        capacities: random stream of the clients' capacities; None for ``run_stream``.
    """

    model: WholeModel
    nodes: int
    clients: int
    run_stream: Stream
    number: int
    stream: Stream
    capacities: Stream | None = None

    @property
    def spec(self) -> ParamSpec:
        """Names and shapes of the full model's parameters."""
        return self.model.spec

    @property
    def capacity_stream(self) -> Stream:
        """Random stream of the clients' capacities."""
        return self.capacities or self.run_stream

    def partition(self, scheme: Scheme) -> Partition:
        """Neuron partition of the model, for submodels of cells."""
        return self.model.partition(scheme)

    def neurons(self) -> NeuronMap:
        """All neurons that submodels of clients can omit."""
        return self.model.neurons()


@dataclass(frozen=True, kw_only=True)
class SenderContext(Context, Generic[D]):
    """What is known when submodels are assigned for a round or for requests.

    Args:
        senders: numbers of the participating clients, [senders].
        node: node that each of them reports to, [senders].
        durations: their seconds, by their submodels.
    """

    senders: IntArray
    node: IntArray
    durations: D


def round_context(
    model: WholeModel, run_stream: Stream, stream: Stream, durations: RoundDurations
) -> SenderContext[RoundDurations]:
    """Context of a round of one model.

    Args:
        model: the model to train.
        run_stream: random stream of what stays fixed during the training of the model.
        stream: random stream of the round.
        durations: participants, channels and durations of the round.
    """
    network = durations.pricing.links.network
    return SenderContext(
        model=model,
        nodes=network.cells,
        clients=network.clients,
        run_stream=run_stream,
        number=durations.number,
        stream=stream,
        senders=durations.who.clients,
        node=durations.node,
        durations=durations,
    )
