"""The interface of a task's model, and a model without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from channels import ChannelDraw, Load
from channels.arrays import FloatArray, IntArray
from wirelessfl.tasks.request import Request


class TaskModel(Protocol):
    """The model of a task, for asynchronous requests and for rounds; ``Learner`` implements it."""

    def issue(self, request: Request) -> None:
        """Send the current model to a client."""

    def came_back(self, number: int) -> None:
        """Record that the update of a request has returned."""

    def gave_up(self, number: int) -> None:
        """Drop a request whose update has missed the cut-off."""

    def air_load(self, requests: Sequence[int]) -> Load:
        """Load of a simultaneous transmission by the clients of these requests."""

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

    def shares(self, clients: IntArray) -> FloatArray:
        """Fraction of the model's parameters that each client would train in a common round."""

    def end(self) -> None:
        """End the task: drop its requests and updates."""

    def spread(self) -> float | None:
        """Spread sigma_m of the latest updates; None if it is unknown."""

    def air_load_of_round(self, clients: IntArray, chosen: IntArray) -> Load:
        """Load of a simultaneous transmission by ``clients`` among those ``chosen`` for a round."""

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


class Untrained:
    """A model without training, to simulate times only.

    Args:
        elements: elements of an update, for simultaneous transmissions.
    """

    def __init__(self, elements: int = 0) -> None:
        self.elements = elements

    def issue(self, request: Request) -> None:
        """Do nothing."""

    def came_back(self, number: int) -> None:
        """Do nothing."""

    def gave_up(self, number: int) -> None:
        """Do nothing."""

    def air_load(self, requests: Sequence[int]) -> Load:
        """Load of full models."""
        return Load(elements=np.full(len(requests), self.elements))

    def merge(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
        *,
        draw: ChannelDraw | None = None,
    ) -> None:
        """Do nothing."""

    def share(self, client: int) -> float:
        """1, the full model."""
        return 1.0

    def shares(self, clients: IntArray) -> FloatArray:
        """1 for each client, the full model."""
        return np.ones(len(clients))

    def end(self) -> None:
        """Do nothing."""

    def spread(self) -> float | None:
        """None, so option D does not change the allocation."""
        return None

    def air_load_of_round(self, clients: IntArray, chosen: IntArray) -> Load:
        """Load of full models."""
        return Load(elements=np.full(len(clients), self.elements))

    def train_round(
        self, clients: IntArray, chosen: IntArray | None = None, *, draw: ChannelDraw | None = None
    ) -> None:
        """Do nothing."""

    def losses(self, clients: IntArray) -> FloatArray:
        """1 for each client."""
        return np.ones(len(clients))
