"""The interface of a task's model, and a model that is not trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from channels import ChannelDraw
from channels.arrays import FloatArray, IntArray
from wirelessfl.tasks.request import Request


class TaskModel(Protocol):
    """The model of a task: of asynchronous requests, or of rounds. ``Learner`` trains one."""

    def issue(self, request: Request) -> None:
        """Send the current model to a client."""

    def came_back(self, number: int) -> None:
        """The update of a request has returned."""

    def merge(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
        draw: ChannelDraw | None = None,
    ) -> None:
        """Merge the updates of these requests, in this order, sent over ``draw`` at once if any."""

    def share(self, client: int) -> float:
        """Parameters that a client would train if it were asked now, over those of the model."""

    def shares(self, clients: IntArray) -> FloatArray:
        """[clients], the same in a common round of these clients."""

    def end(self) -> None:
        """The task has ended: drop its requests and updates."""

    def spread(self) -> float | None:
        """Spread sigma_m of the latest updates; None: unknown."""

    def train_round(
        self, clients: IntArray, chosen: IntArray | None = None, draw: ChannelDraw | None = None
    ) -> None:
        """Train these of the clients ``chosen`` for a round, and merge their updates."""

    def losses(self, clients: IntArray) -> FloatArray:
        """[clients], loss of the current model on the data of each."""


class Untrained:
    """A model that learns nothing, to simulate times alone."""

    def issue(self, request: Request) -> None:
        """Nothing is sent."""

    def came_back(self, number: int) -> None:
        """Nothing came back."""

    def merge(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
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

    def train_round(
        self, clients: IntArray, chosen: IntArray | None = None, draw: ChannelDraw | None = None
    ) -> None:
        """Nobody trains."""

    def losses(self, clients: IntArray) -> FloatArray:
        """Alike for all."""
        return np.ones(len(clients))
