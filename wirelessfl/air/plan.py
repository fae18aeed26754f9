"""What a global round trains and sends, and its plan with channel draws and price."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels import ChannelDraw
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from wirelessfl.air.batteries import Charges
from wirelessfl.air.round_price import Price
from wirelessfl.models.submodels import ClientSubmodels, NeuronMap, ParamSpec, Partition, Submodels
from wirelessfl.models.submodels.partition import Scheme


@dataclass(frozen=True, kw_only=True)
class RoundWork(ABC):
    """What a global round trains and sends: participants and their submodels.

    Args:
        round: round number, from 0, or version of the model.
        clients: [senders], participating clients by the cell that serves them, then by number.
        tracking: [senders] boolean, clients that send tracking terms.
        node: [senders], node that each client reports to.
        submodels: submodel of each node.
        lr_share: factor of the algorithm's step size in this round.
        client_submodels: submodel of each client; None if all train the submodel of their node.
        fresh: [senders] boolean, clients that have never trained before; None for those without
            earlier local steps.
        staleness: [senders], merges since each client received its model; None in rounds.
        edge_rounds: E, number of edge rounds before the cloud merges.
    """

    round: int
    clients: IntArray
    tracking: BoolArray
    node: IntArray
    submodels: Submodels
    lr_share: float = 1.0
    client_submodels: ClientSubmodels | None = None
    fresh: BoolArray | None = None
    staleness: IntArray | None = None
    edge_rounds: int = 1

    def arrived(self, edge_round: int) -> BoolArray | None:
        """Updates [senders] that arrive in an edge round; None if all do."""
        return None

    @abstractmethod
    def draw(self, edge_round: int) -> ChannelDraw | None:
        """Channel draw of an edge round; None if clients send at different times."""

    def beamformers(self, edge_round: int) -> ComplexArray | None:
        """Receive beamformers [nodes, antennas] of an edge round; None if there are none."""
        return None


@dataclass(frozen=True, eq=False)
class Learnt:
    """What a selection knows after it has chosen the clients of a round.

    Args:
        state: its state, arrays by name.
        losses: clients that were asked for their losses, and these.
    """

    state: Mapping[str, NDArray[Any]]
    losses: Sequence[tuple[IntArray, FloatArray]]


@dataclass(frozen=True, kw_only=True)
class Plan(RoundWork):
    """Plan of a global round: also channels and price.

    Args:
        draws: channel draws of the participating clients, h [blocks, senders, antennas]: one block,
            or one per edge round.
        price: seconds, bytes and joules of the round.
        complete: whether no client has left during the round.
        arrivals: [blocks, senders] boolean, updates that arrive in all edge rounds or in each; None
            if all do.
        learnt: what the selection knows after this round; None without a selection.
        charges: batteries after the round has started; None without batteries.
    """

    draws: ChannelDraw
    price: Price
    complete: bool = True
    arrivals: BoolArray | None = None
    learnt: Learnt | None = None
    charges: Charges | None = None

    def without(self, clients: IntArray) -> Plan:
        """Remove clients that left during the round; price and channel draws do not change."""
        stays, chosen = ~np.isin(self.clients, clients), self.client_submodels
        arrivals = self.arrivals
        return replace(
            self,
            clients=self.clients[stays],
            tracking=self.tracking[stays],
            node=self.node[stays],
            client_submodels=None if chosen is None else chosen.of_rows(np.flatnonzero(stays)),
            complete=self.complete and bool(stays.all()),
            arrivals=None if arrivals is None else arrivals[:, stays],
        )

    def arrived(self, edge_round: int) -> BoolArray | None:
        """Updates [senders] that arrive in an edge round; None if all do."""
        if self.arrivals is None:
            return None
        block = self.arrivals[min(edge_round, len(self.arrivals) - 1)]
        return None if block.all() else block

    def draw(self, edge_round: int) -> ChannelDraw:
        """Channel draw of an edge round."""
        return self.draws.block(edge_round)

    def beamformers(self, edge_round: int) -> ComplexArray | None:
        """Receive beamformers [nodes, antennas] of an edge round; None if there are none."""
        if not self.complete:  # they were optimised for all clients
            return None
        planned = self.price.served.service.decision.beamformers
        return None if planned is None else planned[min(edge_round, len(planned) - 1)]


@dataclass(frozen=True)
class WholeModel:
    """The full model of a run, and the neurons that submodels can omit.

    Args:
        spec: names and shapes of its parameters.
        partition: returns its neuron partition for a scheme, for submodels of cells.
        neurons: returns all neurons that submodels of clients can omit.
    """

    spec: ParamSpec
    partition: Callable[[Scheme], Partition]
    neurons: Callable[[], NeuronMap]
