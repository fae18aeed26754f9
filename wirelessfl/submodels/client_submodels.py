"""Submodels of single clients: each its own neurons, of any width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from wirelessfl.submodels.extract import Submodels, extract_neurons
from wirelessfl.submodels.neurons import NeuronMap
from wirelessfl.submodels.partition import IntArray

SOME = 32  # submodels whose places are held at a time where nothing else says how many


@dataclass(frozen=True, eq=False)
class ClientSubmodels:
    """What each client of a round trains.

    Places in the full vector are worked out for a few clients at a time, so that memory does not
    grow with their number.

    Args:
        neurons: what can be left out of the model.
        chosen: per client, per layer of ``neurons``, the sorted numbers of those it holds.
    """

    neurons: NeuronMap
    chosen: Sequence[Sequence[IntArray]]

    @cached_property
    def widths(self) -> IntArray:
        """[clients, layers], neurons of each layer."""
        return np.array([[len(own) for own in layers] for layers in self.chosen], dtype=np.int64)

    @cached_property
    def lengths(self) -> IntArray:
        """[clients], parameters of each submodel."""
        shapes, inverse = np.unique(self.widths, axis=0, return_inverse=True)
        each = np.array([self.neurons.parameters(own) for own in shapes.tolist()], dtype=np.int64)
        return np.asarray(each[inverse.reshape(-1)])

    def of(self, rows: IntArray) -> Submodels:
        """Those of the clients in these rows, padded to the widest of them."""
        return extract_neurons(
            self.neurons.spec, self.neurons.layers, [self.chosen[row] for row in rows.tolist()]
        )

    def of_rows(self, rows: IntArray) -> ClientSubmodels:
        """Those of some of the clients."""
        return ClientSubmodels(self.neurons, [self.chosen[row] for row in rows.tolist()])

    def batches(self, padding: float, most: int) -> list[IntArray]:
        """Rows that train together: of like widths, so that little of a batch is padding.

        Args:
            padding: share of a batch's parameters that may be padding; 0: equal widths only.
            most: rows in a batch.

        Returns:
            Rows of each batch, in rising order within it.
        """
        order = np.lexsort((*self.widths.T, self.lengths))
        batches: list[list[int]] = []
        widest, filled = np.zeros_like(self.widths[0]), 0
        for row in order.tolist():
            wider = np.maximum(widest, self.widths[row])
            if batches:
                room = (len(batches[-1]) + 1) * self.neurons.parameters(wider.tolist())
                idle = 1 - (filled + int(self.lengths[row])) / room
                if idle <= padding and len(batches[-1]) < most:
                    batches[-1].append(row)
                    widest, filled = wider, filled + int(self.lengths[row])
                    continue
            batches.append([row])
            widest, filled = self.widths[row], int(self.lengths[row])
        return [np.sort(np.array(own, dtype=np.int64)) for own in batches]

    def covers(self, rows: IntArray) -> Tensor:
        """[rows, P] boolean, which coordinates of the full vector each of these clients trains."""
        found = torch.zeros(len(rows), self.neurons.spec.size, dtype=torch.bool)
        for row, index in enumerate(self._places(rows)):
            found[row, index] = True
        return found

    def cover(self, node: IntArray, weights: Sequence[float], nodes: int) -> tuple[Tensor, Tensor]:
        """Who covers each coordinate: their weight over that of all at their node, and how many.

        Args:
            node: [clients], the node of each.
            weights: [clients], which sum to 1 at each node where any is positive.
            nodes: how many there are.

        Returns:
            Weight [nodes, P], exactly 1 where every client of positive weight covers it; number of
            clients Gamma^i [nodes, P] int32.
        """
        size = self.neurons.spec.size
        weight, count = torch.zeros(nodes, size), torch.zeros(nodes, size, dtype=torch.int32)
        rows = np.flatnonzero(np.asarray(weights) > 0)
        for row, index in zip(rows.tolist(), self._places(rows), strict=True):
            own = int(node[row])
            weight[own].index_add_(0, index, torch.full((len(index),), weights[row]))
            count[own].index_add_(0, index, torch.ones(len(index), dtype=torch.int32))
        everybody = torch.from_numpy(np.bincount(node[rows], minlength=nodes))[:, None]
        return torch.where((count == everybody) & (count > 0), 1.0, weight), count

    def _places(self, rows: IntArray) -> Iterator[Tensor]:
        """Of one client after the other, its places in the full vector."""
        for start in range(0, len(rows), SOME):
            index = self.of(rows[start : start + SOME]).index
            assert index is not None
            for own in index:
                yield own[own >= 0]
