"""The interface of an algorithm: a client rule and a server rule over explicit state.

An algorithm knows nothing of loops, time, radio or devices. Its dataclass fields are its settings:
they become flags of the command line and keys of ``[algorithm]``, checked and explained by their
``Annotated[type, Field(...)]``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.submodels import ClientSubmodels, NeuronMap, ParamSpec, Partition, Submodels
from wirelessfl.submodels.partition import Scheme
from wirelessfl.training.cohort import State
from wirelessfl.training.payloads import Payload, Received
from wirelessfl.training.rules import ClientRule

Topology = Literal["star", "cells"]
Timing = Literal["rounds", "buffered", "simultaneous"]


class RoundContext(Protocol):
    """What an algorithm may know when it hands out submodels for a round."""

    @property
    def spec(self) -> ParamSpec:
        """The full model's parameters."""

    @property
    def nodes(self) -> int:
        """Nodes (the server, or the edge servers) that train this round."""

    @property
    def stream(self) -> Stream:
        """The round's own randomness."""

    @property
    def number(self) -> int:
        """Of the round, from 0."""

    @property
    def run_stream(self) -> Stream:
        """The run's randomness, the same in all rounds."""

    @property
    def clients(self) -> int:
        """n, registered."""

    @property
    def senders(self) -> IntArray:
        """The clients that take part, in the order of the network."""

    @property
    def node(self) -> IntArray:
        """The node that each of them reports to."""

    def partition(self, scheme: Scheme) -> Partition:
        """The neuron partition of the run's model."""

    def neurons(self) -> NeuronMap:
        """All neurons of the run's model that a submodel may leave out."""

    def client_seconds(self, lengths: IntArray) -> NDArray[np.float64]:
        """Seconds [senders, levels] of the round for submodels of ``lengths`` [levels]."""

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        """Neurons for each node that end the round soonest, at most ``cap`` times the mean."""


@dataclass(frozen=True)
class Algorithm(ClientRule):
    """Base of every algorithm. Tensors of clients are [clients, P], those of a server [P].

    Args:
        lr: step size gamma of the clients' SGD.
    """

    topology: ClassVar[Topology] = "star"
    """``star``: clients report to one server. ``cells``: to the edge server of their cell, which
    is itself a client of the cloud."""
    timing: ClassVar[Timing] = "rounds"
    """``rounds``: of one model. ``buffered``: asynchronous requests for one model or several.
    ``simultaneous``: rounds of several models with a common end."""
    most_tasks: ClassVar[int | None] = 1
    """Models that it trains at a time; None: any number."""
    shared: ClassVar[tuple[str, ...]] = ()
    """Settings that say what its server does with all tasks; a task has none of its own."""
    node_state: ClassVar[bool] = True
    """Whether all server state but the model stays with each edge server; else the cloud combines
    it. A star's server is its only node."""

    @property
    def recounted(self) -> tuple[str, ...]:
        """Server state that is the mean of what clients keep under the same name.

        It is made again when clients come or go.
        """
        return ()

    @property
    def remembers(self) -> tuple[str, ...]:
        """What the server remembers of each registered client, [P] each, zeros at first."""
        return ()

    @property
    def tracks(self) -> bool:
        """Whether some payload is sent by tracking clients alone."""
        return any(payload.senders == "tracking" for payload in self.payloads)

    def check(self, clients: int, per_round: int, tracking: int) -> None:
        """Refuse a participation under which the algorithm does not work.

        Args:
            clients: n, registered.
            per_round: S, that train in a round.
            tracking: of these, who tracks.

        Raises:
            ValueError: it does not; the message names the setting, its value and the remedy.
        """

    def unit(self, payload: Payload, local_steps: int) -> float:
        """In whose multiples an analog uplink sends ``payload`` after ``local_steps`` steps."""
        return float(getattr(self, payload.unit)) if payload.unit else 1.0

    def submodels(self, context: RoundContext) -> Submodels:
        """What each node trains this round: the whole model, unless an algorithm says otherwise."""
        return Submodels.whole(context.spec, context.nodes)

    def client_submodels(self, context: RoundContext) -> ClientSubmodels | None:
        """What each client trains of its node's model; None: all of it."""
        return None

    def tested(self, neurons: Callable[[], NeuronMap]) -> ClientSubmodels | None:
        """The one submodel that is evaluated; None: the whole model."""
        return None

    def initial(self, params: Tensor) -> State:
        """The server's state before the first round, from the initial parameters [P]."""
        return {"params": params}

    def outgoing(self, server: State) -> State:
        """What the server sends, by the names in ``sends``, given its state [nodes, P]."""
        return {name: server[name] for name in self.sends}

    @property
    def one_shape(self) -> bool:
        """Whether what is trained has the same shapes in every round."""
        return True

    @property
    def foresees(self) -> bool:
        """Whether each round is planned before the first, as some may turn out impossible."""
        return False

    def remember(self, received: Received) -> State:
        """What the server remembers of each sender from now on, [clients, P] by name."""
        return {}

    @abstractmethod
    def merge(self, server: State, received: Received) -> State:
        """The next state of the server, or of the edge servers, from what they received.

        Tensors have the nodes on their leading axis here: [nodes, P], one node for a star.
        """
        return dict(server)

    def combine(
        self, cloud: State, nodes: State, submodels: Submodels, weights: Sequence[float]
    ) -> State:
        """The cloud's next state from those of its nodes, [nodes, P_max] by name: their mean.

        The cloud has the model and, unless ``node_state``, the rest of the server's state.
        """
        return {name: submodels.merge(cloud[name], nodes[name], weights) for name in cloud}
