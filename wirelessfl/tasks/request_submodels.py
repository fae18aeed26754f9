"""Which part of a task's model a client trains that was sent it at some version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.submodels import ClientSubmodels, NeuronMap, ParamSpec, Partition
from wirelessfl.submodels.partition import Scheme

VERSIONS = 64  # whose jointly dealt submodels are held, so that memory does not grow with merges


@dataclass(frozen=True, eq=False)
class RequestSubmodels:
    """Submodels of requests, and of common rounds: the model's version is the number of the round.

    What a client trains depends on its number, the version and named streams alone.

    Args:
        algorithm: hands them out.
        spec: the full model's parameters.
        neurons: finds all neurons that submodels may leave out; None: all clients train the whole
            model.
        clients: n, registered.
        stream: the task's.
    """

    algorithm: Algorithm
    spec: ParamSpec
    neurons: Callable[[], NeuronMap] | None
    clients: int
    stream: Stream
    _joint: dict[int, ClientSubmodels | None] = field(default_factory=dict, init=False)

    def of_round(self, clients: IntArray, version: int) -> ClientSubmodels | None:
        """Those of the clients of a common round; None: the whole model.

        Args:
            clients: [rows], in rising order.
            version: of the model that they are sent.
        """
        if self.neurons is None:
            return None
        return self.algorithm.client_submodels(_VersionContext(self, version, clients))

    def of_requests(
        self, clients: Sequence[int], versions: Sequence[int]
    ) -> ClientSubmodels | None:
        """Those of requests; None: all have the whole model.

        Args:
            clients: [rows], who is asked.
            versions: [rows], of the model that each is sent.
        """
        found = [self._one(*pair) for pair in zip(clients, versions, strict=True)]
        if self.neurons is None or all(one is None for one in found):
            return None
        neurons = self.neurons()
        whole = [np.arange(width) for width in neurons.widths]
        return ClientSubmodels(neurons, [whole if one is None else one for one in found])

    def share(self, client: int, version: int) -> float:
        """Parameters of a request's submodel, over those of the whole model."""
        chosen = self._one(client, version)
        if chosen is None or self.neurons is None:
            return 1.0
        return self.neurons().parameters([len(layer) for layer in chosen]) / self.spec.size

    def shares(self, clients: IntArray, version: int) -> FloatArray:
        """[clients], the same for the clients of a common round."""
        found = self.of_round(clients, version)
        return np.ones(len(clients)) if found is None else found.lengths / self.spec.size

    def _one(self, client: int, version: int) -> Sequence[IntArray] | None:
        """By layer, the neurons of a request's submodel; None: the whole model."""
        if self.neurons is None:
            return None
        if not self.algorithm.deals_jointly:
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
    """What the algorithm may ask for when it hands out submodels of a version."""

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
    def clients(self) -> int:
        return self.of.clients

    @property
    def node(self) -> IntArray:
        return np.zeros(len(self.senders), dtype=np.int64)

    def partition(self, scheme: Scheme) -> Partition:
        raise ConfigError(
            f"algorithm {self.of.algorithm.name!r} asks for the neuron partition of cells, and "
            "there is one server: choose schedule rounds."
        )

    def neurons(self) -> NeuronMap:
        assert self.of.neurons is not None, "no submodels are asked for without neurons"
        return self.of.neurons()

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        raise ConfigError(
            f"algorithm {self.of.algorithm.name!r} asks how long a round takes to choose widths, "
            'and there are no rounds of one model: choose schedule rounds, or budget "width", '
            '"bytes" or "flops".'
        )

    def fastest_sizes(self, partition: Partition, cap: float) -> list[int]:
        raise ConfigError(
            f"algorithm {self.of.algorithm.name!r} asks for the sizes that end a round soonest, "
            "and there are no rounds of one model: choose schedule rounds."
        )
