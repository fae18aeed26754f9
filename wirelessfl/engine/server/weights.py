"""Weights of clients in the means of their nodes, and of nodes in the mean of the cloud."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.validation import compact

BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of clients in means: uniform, or by number of samples.

    Args:
        node_of: [clients], node that each client reports to, from 0; stored in the smallest type.
        samples: [clients], number of samples of each client, used as weight; None for uniform
            weights.
    """

    node_of: NDArray[np.integer[Any]]
    samples: FloatArray | None = None

    def __post_init__(self) -> None:
        smallest = np.min_scalar_type(int(self.node_of.max()))
        object.__setattr__(self, "node_of", compact(self.node_of.astype(smallest)))

    @cached_property
    def nodes(self) -> int:
        """Number of nodes: the server of a star, or the edge servers."""
        return int(self.node_of.max()) + 1

    def nodes_of(self, clients: IntArray) -> IntArray:
        """Node that each client reports to, [clients]."""
        return np.asarray(self.node_of[clients], dtype=np.int64)

    def of(self, clients: IntArray) -> FloatArray:
        """Weight of each client [clients]: its number of samples, or 1."""
        return np.ones(len(clients)) if self.samples is None else self.samples[clients]

    def in_means(self, clients: IntArray, node: IntArray | None = None) -> FloatArray:
        """Weight of each client in the mean of its node [clients]; they sum to 1 per node.

        Args:
            clients: client numbers.
            node: [clients], node that each reports to; None for its own.
        """
        node = self.nodes_of(clients) if node is None else node
        return np.asarray(self.of(clients) / self.sums(clients, node)[node])

    def at_nodes(self, clients: IntArray, node: IntArray | None = None) -> list[float]:
        """Weight of each node [nodes]; 0 for nodes that none of ``clients`` report to."""
        sums: list[float] = self.sums(clients, node).tolist()
        return [float(total > 0) for total in sums] if self.samples is None else sums

    def share(self, clients: IntArray, whole: FloatArray) -> FloatArray:
        """Weight of ``clients`` at each node relative to ``whole`` [nodes]; 0 if ``whole`` is 0."""
        return np.asarray(self.sums(clients) / np.where(whole > 0, whole, 1.0))

    def sums(self, clients: IntArray, node: IntArray | None = None) -> FloatArray:
        """Sum of the weights of ``clients`` at each node [nodes].

        Args:
            clients: client numbers.
            node: [clients], node that each reports to; None for its own.
        """
        node = self.nodes_of(clients) if node is None else node
        sums = np.bincount(node, self.of(clients), self.nodes)
        return np.asarray(sums, dtype=np.float64)

    def sums_where(self, chosen: BoolArray) -> FloatArray:
        """Sum of the weights of the clients ``chosen`` [clients] at each node [nodes].

        Blocks of clients keep intermediate results small.
        """
        firsts = range(0, len(chosen), BLOCK)
        blocks = (first + np.flatnonzero(chosen[first : first + BLOCK]) for first in firsts)
        return np.asarray(sum(map(self.sums, blocks), np.zeros(self.nodes)))
