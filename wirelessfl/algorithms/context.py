"""What an algorithm may know when it hands out submodels."""

from __future__ import annotations

from typing import Protocol

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.submodels import NeuronMap, ParamSpec, Partition
from wirelessfl.submodels.partition import Scheme


class DealingContext(Protocol):
    """A round, or a merge of some cells, for which parts of the model are dealt."""

    @property
    def spec(self) -> ParamSpec:
        """The full model's parameters."""

    @property
    def nodes(self) -> int:
        """Nodes: the server, or the edge servers."""

    @property
    def stream(self) -> Stream:
        """The randomness of this round or merge alone."""

    @property
    def number(self) -> int:
        """Of the round, or merges at the cloud so far."""

    @property
    def run_stream(self) -> Stream:
        """The run's randomness, the same in all rounds."""

    @property
    def clients(self) -> int:
        """n, registered."""

    def partition(self, scheme: Scheme) -> Partition:
        """The neuron partition of the run's model."""

    def neurons(self) -> NeuronMap:
        """All neurons of the run's model that a submodel may leave out."""


class RoundContext(DealingContext, Protocol):
    """A round whose participants are known, and whose submodels are not yet."""

    @property
    def senders(self) -> IntArray:
        """The clients that take part, in the order of the network."""

    @property
    def node(self) -> IntArray:
        """The node that each of them reports to."""

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        """Seconds [senders, levels] of the round for submodels of ``lengths`` [levels]."""

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        """Neurons for each node that end the round soonest, at most ``cap`` times the mean."""
