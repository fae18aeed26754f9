"""Submodels of a task's model for training requests, by client and version of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.assigners import Assigner
from wirelessfl.rounds.contexts import SenderContext
from wirelessfl.rounds.plan import WholeModel
from wirelessfl.submodels import ClientSubmodels
from wirelessfl.tasks.request_durations import RequestDurations, RequestSeconds

VERSIONS = 64  # maximum number of versions whose jointly assigned submodels are cached
CHECKED = 4096  # clients that are checked together, to bound memory


@dataclass(frozen=True, eq=False)
class RequestSubmodels:
    """Submodels of requests and of common rounds. The model's version is the round number.

    A submodel depends only on the client's number, the version, named streams and, if its size is
    limited by seconds, the client's mean seconds.

    Args:
        assigner: who trains which neurons.
        model: the full model, and the neurons that submodels can omit.
        clients: n, number of registered clients.
        stream: random stream of the task.
        seconds: mean seconds of the task's requests.
        run_stream: random stream of the run, from which clients get their capacities for all tasks;
            None for ``stream``.
    """

    assigner: Assigner
    model: WholeModel
    clients: int
    stream: Stream
    seconds: RequestSeconds
    run_stream: Stream | None = None
    _joint: dict[int, ClientSubmodels | None] = field(default_factory=dict, init=False)

    def of_round(self, clients: IntArray, version: int) -> ClientSubmodels | None:
        """Submodels of the clients of a common round; None for the full model.

        Args:
            clients: [rows], sorted.
            version: version of the model that the clients receive.
        """
        return self.assigner.client_submodels(self._context(clients, version))

    def check(self) -> None:
        """Check that every client can have a submodel.

        Raises:
            ConfigError: a client cannot; the message names it.
        """
        for start in range(0, self.clients, CHECKED):
            clients = np.arange(start, min(start + CHECKED, self.clients))
            self.assigner.check_senders(self._context(clients, 0))

    def _context(self, clients: IntArray, version: int) -> SenderContext[RequestDurations]:
        return SenderContext(
            model=self.model,
            nodes=1,
            clients=self.clients,
            run_stream=self.stream,
            number=version,
            stream=self.stream.child("round", version),
            senders=clients,
            node=np.zeros(len(clients), dtype=np.int64),
            durations=self.seconds.of(clients, self._size),
            capacities=self.run_stream,
        )

    def of_requests(
        self, clients: Sequence[int], versions: Sequence[int]
    ) -> ClientSubmodels | None:
        """Submodels of requests; None if all have the full model.

        Args:
            clients: [rows], client of each request.
            versions: [rows], version of the model of each request.
        """
        found = [self._one(*pair) for pair in zip(clients, versions, strict=True)]
        if all(one is None for one in found):
            return None
        neurons = self.model.neurons()
        whole = [np.arange(width) for width in neurons.widths]
        chosen = [whole if one is None else one for one in found]
        return ClientSubmodels(neurons, chosen, self.assigner.scaled)

    def share(self, client: int, version: int) -> float:
        """Fraction of the full model's parameters in a request's submodel."""
        chosen = self._one(client, version)
        if chosen is None:
            return 1.0
        return self.model.neurons().parameters([len(layer) for layer in chosen]) / self._size

    @property
    def _size(self) -> int:
        """Number of parameters of the full model."""
        return self.model.spec.size

    def shares(self, clients: IntArray, version: int) -> FloatArray:
        """Fraction of the full model's parameters that each client trains in a common round."""
        found = self.of_round(clients, version)
        return np.ones(len(clients)) if found is None else found.lengths / self._size

    def _one(self, client: int, version: int) -> Sequence[IntArray] | None:
        """Neurons of a request's submodel by layer; None for the full model."""
        if not self.assigner.deals_jointly:
            found = self.of_round(np.array([client]), version)
            return None if found is None else found.chosen[0]
        if version not in self._joint:
            if len(self._joint) == VERSIONS:
                del self._joint[next(iter(self._joint))]
            self._joint[version] = self.of_round(np.arange(self.clients), version)
        found = self._joint[version]
        return None if found is None else found.chosen[client]
