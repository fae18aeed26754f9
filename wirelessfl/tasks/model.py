"""The interface of a task's model, and a model that is not trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from channels import ChannelDraw
from channels.arrays import FloatArray, IntArray
from wirelessfl.tasks.request import Request
from wirelessfl.tasks.transmissions import AirLoad


class TaskModel(Protocol):
    """The model of a task: of asynchronous requests, or of rounds. ``Learner`` trains one."""

    def issue(self, request: Request) -> None:
        """Send the current model to a client."""

    def came_back(self, number: int) -> None:
        """The update of a request has returned."""

    def air_load(self, requests: Sequence[int]) -> AirLoad:
        """What the clients of these requests send if they send at once."""

    def merge(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
        *,
        draw: ChannelDraw | None = None,
    ) -> None:
        """Merge the updates of these requests, in this order.

        Args:
            requests: their numbers.
            staleness: merges between each one's issue and now.
            draw: the channels over which their clients have sent at once, in the order of the
                clients, which is that of ``requests``; None: each has sent by itself.
        """

    def share(self, client: int) -> float:
        """Parameters that a client would train if it were asked now, over those of the model."""

    def shares(self, clients: IntArray) -> FloatArray:
        """[clients], the same in a common round of these clients."""

    def end(self) -> None:
        """The task has ended: drop its requests and updates."""

    def spread(self) -> float | None:
        """Spread sigma_m of the latest updates; None: unknown."""

    def air_load_of_round(self, clients: IntArray, chosen: IntArray) -> AirLoad:
        """What these of the clients ``chosen`` for a round send if they send at once."""

    def train_round(
        self, clients: IntArray, chosen: IntArray | None = None, *, draw: ChannelDraw | None = None
    ) -> None:
        """Train these of the clients ``chosen`` for a round, and merge their updates.

        Args:
            clients: [clients], increasing.
            chosen: all clients of the round, increasing; None: these alone.
            draw: the channels over which they send at once; None: each sends by itself.
        """

    def losses(self, clients: IntArray) -> FloatArray:
        """[clients], loss of the current model on the data of each."""


class Untrained:
    """A model that learns nothing, to simulate times alone.

    Args:
        elements: numbers in an update, which matter where clients send at once.
    """

    def __init__(self, elements: int = 0) -> None:
        self.elements = elements

    def issue(self, request: Request) -> None:
        """Nothing is sent."""

    def came_back(self, number: int) -> None:
        """Nothing came back."""

    def air_load(self, requests: Sequence[int]) -> AirLoad:
        """That of whole models."""
        return AirLoad(self.elements, np.full(len(requests), float(self.elements)))

    def merge(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
        *,
        draw: ChannelDraw | None = None,
    ) -> None:
        """Nothing is merged."""

    def share(self, client: int) -> float:
        """All of the model."""
        return 1.0

    def shares(self, clients: IntArray) -> FloatArray:
        """All of the model each."""
        return np.ones(len(clients))

    def end(self) -> None:
        """Nothing was there."""

    def spread(self) -> float | None:
        """Not known: a dynamic allocation stays as it is."""
        return None

    def air_load_of_round(self, clients: IntArray, chosen: IntArray) -> AirLoad:
        """That of whole models."""
        return AirLoad(self.elements, np.full(len(clients), float(self.elements)))

    def train_round(
        self, clients: IntArray, chosen: IntArray | None = None, *, draw: ChannelDraw | None = None
    ) -> None:
        """Nobody trains."""

    def losses(self, clients: IntArray) -> FloatArray:
        """Alike for all."""
        return np.ones(len(clients))
