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

    def elements_on_air(self, requests: Sequence[int]) -> int:
        """Numbers that an upload lasts in which the clients of these requests send at once."""

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

    def end(self) -> None:
        """The task has ended: drop its requests and updates."""

    def spread(self) -> float | None:
        """Spread sigma_m of the latest updates; None: unknown."""

    def elements_of_round(self, clients: IntArray) -> int:
        """Numbers that an upload lasts in which these clients send at once what they train now."""

    def train_round(self, clients: IntArray, *, draw: ChannelDraw | None = None) -> None:
        """Train these clients from the current model, and merge their updates.

        Args:
            clients: [clients], increasing.
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

    def elements_on_air(self, requests: Sequence[int]) -> int:
        """Those of one update."""
        return self.elements

    def merge(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
        *,
        draw: ChannelDraw | None = None,
    ) -> None:
        """Nothing is merged."""

    def end(self) -> None:
        """Nothing was there."""

    def spread(self) -> float | None:
        """Not known: a dynamic allocation stays as it is."""
        return None

    def elements_of_round(self, clients: IntArray) -> int:
        """Those of one update."""
        return self.elements

    def train_round(self, clients: IntArray, *, draw: ChannelDraw | None = None) -> None:
        """Nobody trains."""

    def losses(self, clients: IntArray) -> FloatArray:
        """Alike for all."""
        return np.ones(len(clients))
