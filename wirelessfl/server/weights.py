"""Weights of clients in the means of their nodes, and of the nodes in that of the cloud."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from channels.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of clients in means: all alike, or by their samples.

    Args:
        node_of: [clients], the node that each reports to, counted from 0.
        samples: [clients], number of samples of each, their weight; None: all weigh alike.
    """

    node_of: IntArray
    samples: FloatArray | None = None

    @cached_property
    def nodes(self) -> int:
        """Number of nodes: the server of a star, or the edge servers."""
        return int(self.node_of.max()) + 1

    def of(self, clients: IntArray) -> FloatArray:
        """[clients], weight of each: its samples, or 1."""
        return np.ones(len(clients)) if self.samples is None else self.samples[clients]

    def in_means(self, clients: IntArray) -> FloatArray:
        """[clients], weight of each in the mean of its node, where they sum to 1."""
        node = self.node_of[clients]
        return np.asarray(self.of(clients) / self.sums(clients)[node])

    def at_nodes(self, clients: IntArray) -> list[float]:
        """[nodes], weight of each node to which some of ``clients`` report; 0 for the others."""
        sums: list[float] = self.sums(clients).tolist()
        return [float(total > 0) for total in sums] if self.samples is None else sums

    def share(self, clients: IntArray, whole: FloatArray) -> FloatArray:
        """[nodes], weight of ``clients`` over ``whole`` [nodes], that of more; 0 where it is 0."""
        return np.asarray(self.sums(clients) / np.where(whole > 0, whole, 1.0))

    def sums(self, clients: IntArray) -> FloatArray:
        """[nodes], weights of ``clients`` added up at their nodes."""
        sums = np.bincount(self.node_of[clients], self.of(clients), self.nodes)
        return np.asarray(sums, dtype=np.float64)
