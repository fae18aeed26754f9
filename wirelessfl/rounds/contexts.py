"""What an algorithm knows when it assigns submodels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels import ChannelDraw
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.mask_sizes import mask_size_problem
from wirelessfl.rounds.participants import Participants
from wirelessfl.rounds.plan import WholeModel
from wirelessfl.rounds.price import Pricing
from wirelessfl.submodels import NeuronMap, ParamSpec, Partition
from wirelessfl.submodels.partition import Scheme
from wirelessfl.uplinks.checked import serving


@dataclass(frozen=True)
class DealingContext:
    """Context that an algorithm needs to assign submodels after a merge.

    Args:
        model: the model to train.
        pricing: loads and prices of the rounds.
        run_stream: random stream of what stays fixed during the run.
        number: number of the round, from 0, or of the merge.
        stream: random stream of this round or merge.
    """

    model: WholeModel
    pricing: Pricing
    run_stream: Stream
    number: int
    stream: Stream

    @property
    def spec(self) -> ParamSpec:
        """Names and shapes of the full model's parameters."""
        return self.model.spec

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.pricing.links.network.cells

    @property
    def capacity_stream(self) -> Stream:
        """Random stream of the clients' capacities."""
        return self.run_stream

    @property
    def clients(self) -> int:
        """Number of clients of the network."""
        return self.pricing.links.network.clients

    def partition(self, scheme: Scheme) -> Partition:
        """Neuron partition of the model, for submodels of cells."""
        return self.model.partition(scheme)

    def neurons(self) -> NeuronMap:
        """All neurons that submodels of clients can omit."""
        return self.model.neurons()


@dataclass(frozen=True)
class RoundContext(DealingContext):
    """Context that an algorithm needs to assign the submodels of a round.

    Args:
        draws: channels of (at least) the participating clients, in blocks.
        who: participating clients.
    """

    draws: ChannelDraw
    who: Participants

    @property
    def senders(self) -> IntArray:
        """Numbers of the participating clients, [senders]."""
        return self.who.clients

    @property
    def node(self) -> IntArray:
        """Node that each of them reports to, [senders]."""
        return self.draws.network.cell_of

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

        Raises:
            ConfigError: there are none.
        """
        pricing, draws, who = self.pricing, self.draws, self.who
        empty = np.bincount(self.node, minlength=self.nodes) == 0

        def seconds(sizes: IntArray) -> FloatArray:
            found = pricing.node_seconds(draws, who, partition.lengths(sizes))
            for cell in np.flatnonzero(empty):
                # A cell without a client takes no time, but must get the smallest submodel: count
                # that of the slowest cell with its size.
                same = np.repeat(partition.lengths(sizes[:, cell])[:, None], len(empty), 1)
                found[:, cell] = pricing.node_seconds(draws, who, same).max(-1)
            return found

        with serving(f"{pricing.title}, round {self.number + 1}"):
            solution = mask_size_problem(partition, seconds, self.nodes, size_cap=cap).solve()
        if solution.value is None:
            with serving(f"{pricing.title}, round {self.number + 1}"):
                # An access with a deadline explains why cells never end.
                even = partition.lengths(np.full(self.nodes, partition.width // self.nodes))
                pricing.sizing.serve(pricing.load(who, even[self.node]), draws)
            raise ConfigError(
                f"mask sizes: {solution.message}. Raise size_cap, or use fewer cells."
            )
        return [int(size) for size in np.asarray(solution.value)]
