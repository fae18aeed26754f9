"""What an algorithm knows when it assigns submodels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from channels import ChannelDraw
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.mask_sizes import mask_size_problem
from wirelessfl.rounds.participants import Participants
from wirelessfl.rounds.plan import WholeModel
from wirelessfl.rounds.round_price import Pricing
from wirelessfl.submodels import NeuronMap, ParamSpec, Partition
from wirelessfl.submodels.partition import Scheme
from wirelessfl.uplinks.checked import serving


@dataclass(frozen=True)
class Durations:
    """Durations of a round whose participants and channels are known.

    Args:
        pricing: loads and prices of the rounds.
        draws: channels of (at least) the participating clients, in blocks.
        who: participating clients.
        number: number of the round, from 0.
    """

    pricing: Pricing
    draws: ChannelDraw
    who: Participants
    number: int

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        """Sizes [nodes] with which the slowest cell ends soonest.

        Args:
            partition: neuron partition of the model.
            cap: largest size over that of equal sizes.

        Raises:
            ConfigError: there are none.
        """
        pricing, draws, who = self.pricing, self.draws, self.who
        node, nodes = draws.network.cell_of, pricing.links.network.cells
        empty = np.bincount(node, minlength=nodes) == 0

        def seconds(sizes: IntArray) -> FloatArray:
            found = pricing.node_seconds(draws, who, partition.lengths(sizes))
            for cell in np.flatnonzero(empty):
                # A cell without a client takes no time, but must get the smallest submodel: count
                # that of the slowest cell with its size.
                same = np.repeat(partition.lengths(sizes[:, cell])[:, None], len(empty), 1)
                found[:, cell] = pricing.node_seconds(draws, who, same).max(-1)
            return found

        with serving(f"{pricing.title}, round {self.number + 1}"):
            solution = mask_size_problem(partition, seconds, nodes, size_cap=cap).solve()
        if solution.value is None:
            with serving(f"{pricing.title}, round {self.number + 1}"):
                # An access with a deadline explains why cells never end.
                even = partition.lengths(np.full(nodes, partition.width // nodes))
                pricing.sizing.serve(pricing.load(who, even[node]), draws)
            raise ConfigError(
                f"mask sizes: {solution.message}. Raise size_cap, or use fewer cells."
            )
        return [int(size) for size in np.asarray(solution.value)]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What is known when submodels are assigned: for a round, a merge, or requests.

    Args:
        model: the model to train.
        nodes: number of nodes.
        clients: number of registered clients.
        run_stream: random stream of what stays fixed during the training of the model.
        number: number of the round, from 0, or of merges.
        stream: random stream of this round or merge.
        senders: numbers of the participating clients, [senders]; none at a merge.
        node: node that each of them reports to, [senders].
        capacities: random stream of the clients' capacities; None for ``run_stream``.
        durations: durations of the round; None if it is not a round of one model.
    """

    model: WholeModel
    nodes: int
    clients: int
    run_stream: Stream
    number: int
    stream: Stream
    senders: IntArray
    node: IntArray
    capacities: Stream | None = None
    durations: Durations | None = None

    @classmethod
    def of_merge(
        cls, model: WholeModel, pricing: Pricing, run_stream: Stream, number: int, stream: Stream
    ) -> Context:
        """Context in which submodels of cells are assigned after a merge."""
        network, none = pricing.links.network, np.zeros(0, dtype=np.int64)
        return cls(
            model=model,
            nodes=network.cells,
            clients=network.clients,
            run_stream=run_stream,
            number=number,
            stream=stream,
            senders=none,
            node=none,
        )

    @classmethod
    def of_round(
        cls,
        model: WholeModel,
        pricing: Pricing,
        run_stream: Stream,
        number: int,
        stream: Stream,
        draws: ChannelDraw,
        who: Participants,
    ) -> Context:
        """Context of a round whose participants and channels are known."""
        return replace(
            cls.of_merge(model, pricing, run_stream, number, stream),
            senders=who.clients,
            node=draws.network.cell_of,
            durations=Durations(pricing, draws, who, number),
        )

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

    @property
    def coupled(self) -> bool:
        """Whether a client's seconds depend on the loads of the others in its cell."""
        return self.durations is not None and self.durations.pricing.sizing.coupled

    def seconds_of(self, lengths: IntArray) -> FloatArray:
        """See ``Pricing.seconds_of``."""
        found = self._durations
        return found.pricing.seconds_of(found.draws, found.who, lengths)

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        """See ``Pricing.client_seconds``."""
        found = self._durations
        return found.pricing.client_seconds(found.draws, found.who, lengths)

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        """See ``Durations.fastest_sizes``."""
        return self._durations.fastest_sizes(partition, cap)

    @property
    def _durations(self) -> Durations:
        """The durations of the round.

        Raises:
            ConfigError: there is no round of one model.
        """
        if self.durations is None:
            raise ConfigError(
                "submodels depend on the duration of a round, and this schedule has no rounds of "
                "one model: choose schedule='rounds', or budget='width', 'bytes' or 'flops'."
            )
        return self.durations
