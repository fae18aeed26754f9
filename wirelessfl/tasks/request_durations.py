"""Mean seconds of a task's requests, by the clients' submodels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from channels.arrays import FloatArray, IntArray
from wirelessfl.errors import ConfigError
from wirelessfl.import_paths import path_of
from wirelessfl.tasks.delays import Delays

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
        """Mean seconds [..., clients] for fractions [..., clients] of the full model.

        Raises:
            ConfigError: the latency model gives none.
        """
        found = self.delays.mean_seconds(self.task, clients, shares)
        if found is None:
            raise ConfigError(
                f"delays={self.name!r} gives no mean seconds of a request, which submodels by "
                f"seconds need: define {path_of(type(self.delays))}.mean_seconds, or choose budget "
                '"width", "bytes" or "flops".'
            )
        return found

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
        """Seconds [candidates, senders] for submodels [candidates, senders] of these lengths.

        Raises:
            ConfigError: the latency model gives no means.
        """
        return self.seconds.mean(self.clients, lengths / self.size)

    def client_seconds(self, lengths: IntArray) -> FloatArray:
        """Seconds [senders, levels] for submodels of ``lengths`` [levels] parameters.

        Raises:
            ConfigError: as ``seconds_of``.
        """
        if len(self.clients) == 1:
            return self.seconds.cached_mean(int(self.clients[0]), lengths / self.size)[None]
        return self.seconds_of(np.repeat(lengths[:, None], len(self.clients), 1)).T
