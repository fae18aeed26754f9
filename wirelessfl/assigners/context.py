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


class RoundContext(DealingContext, Protocol):
    """A round whose participants are known and whose submodels are being chosen."""

    @property
    def senders(self) -> IntArray:
        """Participating clients, in the same order as in the network."""

    @property
    def node(self) -> IntArray:
        """Node that each sender reports to."""

    @property
    def coupled(self) -> bool:
        """Whether a client's seconds depend on the submodels of other clients of its node."""

    def seconds_of(self, lengths: IntArray) -> FloatArray:
        """Seconds [candidates, senders] per round for submodels [candidates, senders] of lengths.

        Over the air, they are those of sending the full model.
        """

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        """Seconds [senders, levels] per round for submodels of ``lengths`` [levels] parameters."""

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        """Neurons per node that minimise the round's latency, at most ``cap`` times their mean."""
