"""Information that an algorithm receives when it assigns submodels."""

from __future__ import annotations

from typing import Protocol

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.submodels import NeuronMap, ParamSpec, Partition
from wirelessfl.submodels.partition import Scheme


class DealingContext(Protocol):
    """A round, or a merge of some cells, for which submodels are assigned."""

    @property
    def spec(self) -> ParamSpec:
        """Parameters of the full model."""

    @property
    def nodes(self) -> int:
        """Number of nodes: 1 (the server), or the number of edge servers."""

    @property
    def stream(self) -> Stream:
        """Random stream of this round or merge."""

    @property
    def number(self) -> int:
        """Index of the round, from 0; or number of merges at the cloud, including this one."""

    @property
    def run_stream(self) -> Stream:
        """Random stream of the model's training, the same in all its rounds."""

    @property
    def capacity_stream(self) -> Stream:
        """Random stream of the clients' capacities, the same in all rounds of all tasks."""

    @property
    def clients(self) -> int:
        """n, number of registered clients."""

    def partition(self, scheme: Scheme) -> Partition:
        """Neuron partition of the run's model."""

    def neurons(self) -> NeuronMap:
        """Neurons of the run's model that a submodel can omit."""


class Durations(Protocol):
    """Seconds of a round, or of training requests, by the clients' submodels."""

    @property
    def title(self) -> str:
        """The round, or the requests, for messages, e.g. "round 3"."""

    @property
    def remedies(self) -> str:
        """Settings that shorten it, for messages: what follows "raise deadline," there."""

    @property
    def coupled(self) -> bool:
        """Whether a client's seconds depend on the submodels of other clients of its node."""

    def seconds_of(self, lengths: IntArray) -> FloatArray:
        """Seconds [candidates, senders] for submodels [candidates, senders] of these lengths.

        Over the air, they are those of sending the full model.
        """

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        """Seconds [senders, levels] for submodels of ``lengths`` [levels] parameters."""


class CellDurations(Durations, Protocol):
    """Seconds of a round whose nodes can have submodels."""

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        """Neurons per node that minimise the round's latency, at most ``cap`` times their mean."""


class ClientContext(DealingContext, Protocol):
    """A round, or requests, whose clients are known and whose submodels are being chosen."""

    @property
    def senders(self) -> IntArray:
        """Participating clients, in the same order as in the network."""

    @property
    def node(self) -> IntArray:
        """Node that each sender reports to."""

    @property
    def durations(self) -> Durations:
        """Seconds of the senders, by their submodels."""


class RoundContext(ClientContext, Protocol):
    """A round of one model whose participants are known and whose submodels are being chosen."""

    @property
    def durations(self) -> CellDurations:
        """Seconds of the round, by the submodels of its clients or nodes."""
