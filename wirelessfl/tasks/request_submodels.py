"""Submodels of a task's model for training requests, by client and version of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.assigners import Assigner
from wirelessfl.errors import ConfigError
from wirelessfl.submodels import ClientSubmodels, NeuronMap, ParamSpec, Partition
from wirelessfl.submodels.partition import Scheme

VERSIONS = 64  # maximum number of versions whose jointly assigned submodels are cached


@dataclass(frozen=True, eq=False)
class RequestSubmodels:
    """Submodels of requests and of common rounds. The model's version is the round number.

    A submodel depends only on the client's number, the version, and named streams.

    Args:
        assigner: who trains which neurons.
        spec: parameters of the full model.
        neurons: finds all neurons that submodels can omit; None if all clients train the full
            model.
        clients: n, number of registered clients.
        stream: random stream of the task.
        run_stream: random stream of the run, from which clients get their capacities for all tasks;
            None for ``stream``.
    """

    assigner: Assigner
    spec: ParamSpec
    neurons: Callable[[], NeuronMap] | None
    clients: int
    stream: Stream
    run_stream: Stream | None = None
    _joint: dict[int, ClientSubmodels | None] = field(default_factory=dict, init=False)

    def of_round(self, clients: IntArray, version: int) -> ClientSubmodels | None:
        """Submodels of the clients of a common round; None for the full model.

        Args:
            clients: [rows], sorted.
            version: version of the model that the clients receive.
        """
        if self.neurons is None:
            return None
        return self.assigner.client_submodels(_VersionContext(self, version, clients))

    def of_requests(
        self, clients: Sequence[int], versions: Sequence[int]
    ) -> ClientSubmodels | None:
        """Submodels of requests; None if all have the full model.

        Args:
            clients: [rows], client of each request.
            versions: [rows], version of the model of each request.
        """
        found = [self._one(*pair) for pair in zip(clients, versions, strict=True)]
        if self.neurons is None or all(one is None for one in found):
            return None
        neurons = self.neurons()
        whole = [np.arange(width) for width in neurons.widths]
        chosen = [whole if one is None else one for one in found]
        return ClientSubmodels(neurons, chosen, self.assigner.scaled)

    def share(self, client: int, version: int) -> float:
        """Fraction of the full model's parameters in a request's submodel."""
        chosen = self._one(client, version)
        if chosen is None or self.neurons is None:
            return 1.0
        return self.neurons().parameters([len(layer) for layer in chosen]) / self.spec.size

    def shares(self, clients: IntArray, version: int) -> FloatArray:
        """Fraction of the full model's parameters that each client trains in a common round."""
        found = self.of_round(clients, version)
        return np.ones(len(clients)) if found is None else found.lengths / self.spec.size

    def _one(self, client: int, version: int) -> Sequence[IntArray] | None:
        """Neurons of a request's submodel by layer; None for the full model."""
        if self.neurons is None:
            return None
        if not self.assigner.deals_jointly:
            found = self.of_round(np.array([client]), version)
            return None if found is None else found.chosen[0]
        if version not in self._joint:
            if len(self._joint) == VERSIONS:
                del self._joint[next(iter(self._joint))]
            self._joint[version] = self.of_round(np.arange(self.clients), version)
        found = self._joint[version]
        return None if found is None else found.chosen[client]


@dataclass(frozen=True, eq=False)
class _VersionContext:
    """Context in which the submodels of a version are assigned."""

    of: RequestSubmodels
    number: int
    senders: IntArray

    @property
    def spec(self) -> ParamSpec:
        return self.of.spec

    @property
    def nodes(self) -> int:
        return 1

    @property
    def stream(self) -> Stream:
        return self.of.stream.child("round", self.number)

    @property
    def run_stream(self) -> Stream:
        return self.of.stream

    @property
    def capacity_stream(self) -> Stream:
        return self.of.run_stream or self.of.stream

    @property
    def clients(self) -> int:
        return self.of.clients

    @property
    def node(self) -> IntArray:
        return np.zeros(len(self.senders), dtype=np.int64)

    def partition(self, scheme: Scheme) -> Partition:
        raise ConfigError(
            f"{self.of.assigner.title!r} needs the neuron partition of cells, and this "
            "schedule has one server: choose schedule='rounds'."
        )

    def neurons(self) -> NeuronMap:
        assert self.of.neurons is not None, "submodels need neurons"
        return self.of.neurons()

    @property
    def coupled(self) -> bool:
        return False

    def seconds_of(self, lengths: IntArray) -> FloatArray:
        return self.client_seconds(lengths)

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        raise ConfigError(
            f"{self.of.assigner.title!r} chooses widths by the duration of a round, and "
            "this schedule has no rounds of one model: choose schedule='rounds', or "
            "budget='width', 'bytes' or 'flops'."
        )

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        raise ConfigError(
            f"{self.of.assigner.title!r} needs sizes that minimise the duration of a "
            "round, and this schedule has no rounds of one model: choose schedule='rounds'."
        )
