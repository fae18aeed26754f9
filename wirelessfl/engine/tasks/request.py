"""A training request: its record, mean seconds and submodel, and the spread of updates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.delays import Delays
from wirelessfl.air.plan import WholeModel
from wirelessfl.algorithms.assigners import Assigner
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import path_of
from wirelessfl.engine.rounds.contexts import SenderContext
from wirelessfl.models.submodels import ClientSubmodels

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(slots=True, eq=False)
class Request:
    """A training request at a client.

    Args:
        number: number of the request, from 0; numbers are unique in a run.
        task: index of the task whose model is trained.
        client: client that trains the model.
        version: number of merges of the model when the request was issued.
        issued: simulated time of issue, in seconds.
        seconds: duration of training; includes the upload if one draw covers both.
        share: fraction of the full model's parameters that the client trains.
        lost_after: seconds of training after which the client drops out; None if it does not.
        begun: simulated time at which training started; None while it waits in the client's queue.
        dropped: whether the request was cancelled: its task ended, or it missed the cut-off.
    """

    number: int
    task: int
    client: int
    version: int
    issued: float
    seconds: float
    share: float = 1.0
    lost_after: float | None = None
    begun: float | None = None
    dropped: bool = False


KNOWN = 4096
"""Maximum number of clients whose seconds are cached."""


@dataclass(frozen=True, eq=False)
class RequestSeconds:
    """Mean seconds of the requests of a task, see ``Delays.mean_seconds``.

    Args:
        delays: latency model.
        task: number of the task.
        name: setting ``delays``, for messages.
        title: name of the task in messages.
        work: what clients get, in messages.
    """

    delays: Delays
    task: int = 0
    name: str = "wireless"
    title: str = "task"
    work: str = "a request"
    _known: dict[tuple[int, bytes], FloatArray] = field(default_factory=dict, init=False)

    def of(self, clients: IntArray, size: int) -> RequestDurations:
        """Durations of requests to ``clients`` for submodels of a model of ``size`` parameters."""
        return RequestDurations(self, clients, size)

    def mean(self, clients: IntArray, shares: FloatArray) -> FloatArray:
        """Mean seconds [..., clients] for fractions [..., clients] of the full model."""
        seconds = self.delays.mean_seconds(self.task, clients, shares)
        if seconds is None:
            raise ConfigError(
                f"delays={self.name!r} gives no mean seconds of a request, which submodels by "
                f"seconds need: define {path_of(type(self.delays))}.mean_seconds, or choose budget "
                '"width", "bytes" or "flops".'
            )
        return seconds

    def cached_mean(self, client: int, shares: FloatArray) -> FloatArray:
        """``mean`` [levels] of one client, which has requests again and again."""
        key = client, shares.tobytes()
        if key not in self._known:
            if len(self._known) == KNOWN:
                del self._known[next(iter(self._known))]
            self._known[key] = self.mean(np.array([client]), shares[:, None])[:, 0]
        return self._known[key]


@dataclass(frozen=True, eq=False)
class RequestDurations:
    """Durations of requests, or of a common round of several tasks, see ``assigners.context``.

    A client counts with its mean seconds, alone on the air: where clients share a band, an upload
    may take longer than in these durations. They are the same for all versions of the model.

    Args:
        seconds: mean seconds of the task's requests.
        clients: [senders], their numbers.
        size: number of parameters of the full model.
    """

    seconds: RequestSeconds
    clients: IntArray
    size: int

    @property
    def title(self) -> str:
        """A request of the task, or a round."""
        return f"{self.seconds.work} of {self.seconds.title}"

    @property
    def remedies(self) -> str:
        """Settings that shorten requests."""
        if self.seconds.delays.wireless is None:
            return "or lower local_steps"
        return "bandwidth_hz or cpu_hz"

    @property
    def coupled(self) -> bool:
        """False: a client's seconds are those that it takes alone."""
        return False

    def seconds_of(self, lengths: IntArray) -> FloatArray:
        """Seconds [candidates, senders] for submodels [candidates, senders] of these lengths."""
        return self.seconds.mean(self.clients, lengths / self.size)

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        """Seconds [senders, levels] for submodels of ``lengths`` [levels] parameters."""
        if len(self.clients) == 1:
            return self.seconds.cached_mean(int(self.clients[0]), lengths / self.size)[None]
        return self.seconds_of(np.repeat(lengths[:, None], len(self.clients), 1)).T


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
        """Check that every client can have a submodel."""
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
        held = [self._one(*pair) for pair in zip(clients, versions, strict=True)]
        parts = [submodels for submodels, _ in held if submodels is not None]
        if not parts:
            return None
        neurons = self.model.neurons()
        whole = [np.arange(width) for width in neurons.widths]
        chosen = [whole if part is None else part.chosen[row] for part, row in held]
        return ClientSubmodels(neurons, chosen, parts[0].scaled)

    def share(self, client: int, version: int) -> float:
        """Fraction of the full model's parameters in a request's submodel."""
        submodels, row = self._one(client, version)
        if submodels is None:
            return 1.0
        widths = [len(layer) for layer in submodels.chosen[row]]
        return self.model.neurons().parameters(widths) / self._size

    @property
    def _size(self) -> int:
        return self.model.spec.size

    def shares(self, clients: IntArray, version: int) -> FloatArray:
        """Fraction of the full model's parameters that each client trains in a common round."""
        submodels = self.of_round(clients, version)
        return np.ones(len(clients)) if submodels is None else submodels.lengths / self._size

    def _one(self, client: int, version: int) -> tuple[ClientSubmodels | None, int]:
        """Submodels and the row of a request's own; None for the full model."""
        if not self.assigner.deals_jointly:
            return self.of_round(np.array([client]), version), 0
        if version not in self._joint:
            if len(self._joint) == VERSIONS:
                del self._joint[next(iter(self._joint))]
            self._joint[version] = self.of_round(np.arange(self.clients), version)
        return self._joint[version], client


def spread(updates: Tensor, lr: float, server_lr: float, local_steps: int) -> float | None:
    """Spread sigma_m, with sigma_m^2 = eta_c eta_s tau (1/V) sum ||D_i - D||^2 / ||D||^2.

    D is the mean of the updates D_i (Askin et al., UAI 2024, Algorithm 4).

    Args:
        updates: [V, P], latest updates D_i = (x - x_tau)/(tau eta_c), with the step size eta_c of
            the round of each update; a common factor cancels.
        lr: eta_c, current step size of the clients.
        server_lr: eta_s, step size of the server along the mean update.
        local_steps: tau, number of local steps.

    Returns:
        sigma_m; None if the mean is zero or training has diverged.
    """
    mean = updates.mean(0)
    size = float(mean.square().sum())
    if not 0.0 < size < math.inf:
        return None
    apart = float((updates - mean).square().sum()) / len(updates) / size
    sigma = (lr * server_lr * local_steps * apart) ** 0.5
    return sigma if math.isfinite(sigma) else None
