"""A model that is not trained: for times alone, which do not depend on what clients learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from channels.arrays import FloatArray, IntArray
from wirelessfl.tasks.requests import Request


class Untrained:
    """Takes part in everything, and learns nothing."""

    def issue(self, request: Request) -> None:
        """Nothing is sent."""

    def came_back(self, number: int) -> None:
        """Nothing came back."""

    def merge(self, requests: Sequence[int], staleness: Sequence[int]) -> None:
        """Nothing is merged."""

    def end(self) -> None:
        """Nothing was there."""

    def spread(self) -> float | None:
        """Not known: a dynamic allocation stays as it is."""
        return None

    def train_round(self, clients: IntArray) -> None:
        """Nobody trains."""

    def losses(self, clients: IntArray) -> FloatArray:
        """Alike for all."""
        return np.ones(len(clients))
