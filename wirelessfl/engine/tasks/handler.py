"""What runs of several tasks have in common: models, records for the timeline, and rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from channels import ChannelDraw, Load
from channels.arrays import FloatArray, IntArray
from wirelessfl.engine.events import Report
from wirelessfl.engine.loop import Handler, RowFields
from wirelessfl.engine.server.ledger import Spending, Traffic
from wirelessfl.engine.tasks.request import Request


class TaskModel:
    """The model of a task as its handler sees it. This one is not trained: it only simulates times.

    Args:
        elements: elements of an update, for simultaneous transmissions.
    """

    def __init__(self, elements: int = 0) -> None:
        self.elements = elements

    def issue(self, request: Request) -> None:
        """Send the current model to a client."""

    def came_back(self, number: int) -> None:
        """Record that the update of a request has returned."""

    def gave_up(self, number: int) -> None:
        """Drop a request whose update has missed the cut-off."""

    def drop(self, number: int) -> None:
        """Drop an update that has returned."""

    def air_load(self, requests: Sequence[int]) -> Load:
        """Load of a simultaneous transmission by the clients of these requests."""
        return Load(elements=np.full(len(requests), self.elements))

    def merge(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
        *,
        draw: ChannelDraw | None = None,
    ) -> None:
        """Merge the updates of these requests, in this order.

        Args:
            requests: numbers of the requests.
            staleness: by request, merges since it was issued.
            draw: channel draw if the clients sent simultaneously; None if each sent separately. Its
                rows are in the order of ``requests``, which are then sorted by client.
        """

    def share(self, client: int) -> float:
        """Fraction of the model's parameters that a request would train at a client now."""
        return 1.0

    def shares(self, clients: IntArray) -> FloatArray:
        """Fraction of the model's parameters that each client would train in a common round."""
        return np.ones(len(clients))

    def end(self) -> None:
        """End the task: drop its requests and updates."""

    def spread(self) -> float | None:
        """Spread sigma_m of the latest updates; None if it is unknown."""
        return None

    def air_load_of_round(self, clients: IntArray, chosen: IntArray) -> Load:
        """Load of a simultaneous transmission by ``clients`` among those ``chosen`` for a round."""
        return Load(elements=np.full(len(clients), self.elements))

    def train_round(
        self, clients: IntArray, chosen: IntArray | None = None, *, draw: ChannelDraw | None = None
    ) -> None:
        """Train ``clients`` in a round, and merge their updates.

        Args:
            clients: [clients], sorted; clients whose updates are awaited.
            chosen: all clients of the round, sorted; None if these are ``clients``.
            draw: channel draw if they send simultaneously; None if each sends separately.
        """

    def losses(self, clients: IntArray) -> FloatArray:
        """Loss of the current model on the data of each client, [clients]."""
        return np.ones(len(clients))


class Span(NamedTuple):
    """A client's work on a request; ``how`` is done, lost, cancelled, too stale or under way."""

    task: int
    client: int
    begin: float
    end: float
    how: str


@dataclass(frozen=True)
class Merged:
    """A merge: its task, its simulated time, and the staleness of its updates."""

    task: int
    seconds: float
    staleness: tuple[int, ...]


@dataclass(frozen=True)
class Records:
    """Lists that are filled during the run.

    Args:
        spans: finished work of clients, in order of completion.
        merges: merges of all tasks, in order.
    """

    spans: list[Span] = field(default_factory=list)
    merges: list[Merged] = field(default_factory=list)


class Sums(NamedTuple):
    """What the tasks have sent and spent.

    Args:
        up: [tasks], number of returned updates; that of a submodel counts as a fraction.
        down: [tasks], number of models sent to clients; a submodel counts as a fraction.
        returned: [tasks], number of returned updates.
        spent: energy of the clients.
    """

    up: Sequence[float]
    down: Sequence[float]
    returned: Sequence[int]
    spent: Spending


class TaskHandler(Handler):
    """Carries out the decisions of a schedule for tasks.

    Args:
        traffic: what models and updates transmit; None if no rows are written.
    """

    def __init__(self, traffic: Traffic | None) -> None:
        self._traffic = traffic

    @property
    def traffic(self) -> Traffic:
        """What models and updates transmit."""
        assert self._traffic is not None, "no rows are written"
        return self._traffic

    @abstractmethod
    def sums(self) -> Sums:
        """What has been sent and spent so far."""

    @abstractmethod
    def status(self, task: int) -> dict[str, Any]:
        """Further fields of a task's row."""

    @abstractmethod
    def under_way(self, now: float) -> list[Span]:
        """Spans of the work in progress, for a timeline that ends at ``now``."""

    def fields(self, report: Report) -> RowFields:
        """Number of the round and name of the task, its status, and the costs of all tasks."""
        assert report.task is not None
        sums, traffic = self.sums(), self.traffic
        costs = {
            **report.status,
            **self.status(report.task),
            **traffic.fields(sums.up, sums.down, sums.returned),
            "joules": sums.spent.total / traffic.clients,
            "joules_max": sums.spent.most,
        }
        head = {"round": report.round, "task": traffic.names[report.task]}
        return RowFields(head, costs, {})
