"""Submodels as an index into the flat vector: taken out, trained, merged by coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.submodels.flat import ParamSpec
from wirelessfl.submodels.merging import covered_mean
from wirelessfl.submodels.neurons import NeuronMap, Neurons
from wirelessfl.submodels.partition import Partition


@dataclass(frozen=True)
class Submodels:
    """What each node of a round trains.

    Args:
        spec: shapes of a submodel, padded to the widest node.
        lengths: [nodes], true numbers of parameters; bytes and seconds count these. 0 at a node
            that trains nothing.
        index: [nodes, P_max] positions in the full flat vector, -1 where padded; None for the
            whole model at every node.
        full_size: P of the full model.
        kept: names of parameters that clients train and never send.
        neurons: by node, by layer, the sorted neuron numbers that it was made from; None where it
            was not made from neurons.
    """

    spec: ParamSpec
    lengths: IntArray
    index: Tensor | None
    full_size: int
    kept: tuple[str, ...] = ()
    neurons: tuple[tuple[IntArray, ...], ...] | None = None

    @classmethod
    def whole(cls, spec: ParamSpec, nodes: int) -> Submodels:
        """The full model at each of ``nodes`` nodes."""
        return cls(spec, np.full(nodes, spec.size, dtype=np.int64), None, spec.size)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.lengths)

    def keeping(self, names: Sequence[str]) -> Submodels:
        """The same, the parameters ``names`` not exchanged; bytes and seconds do not count them."""
        kept = tuple(name for name in names if name in self.spec.shapes)
        found = replace(self, kept=kept)
        lost = np.zeros_like(self.lengths)
        for where in found._slices():
            count = where.stop - where.start
            lost += count if self.index is None else (self.index[:, where] >= 0).sum(1).numpy()
        return replace(found, lengths=self.lengths - lost)

    def only(self, nodes: Sequence[int]) -> Submodels:
        """Those of ``nodes``; the others train nothing."""
        rest = np.setdiff1d(np.arange(self.nodes), nodes)
        lengths = self.lengths.copy()
        lengths[rest] = 0
        if self.index is None:
            return replace(self, lengths=lengths)
        index = self.index.clone()
        index[torch.from_numpy(rest)] = -1
        return replace(self, lengths=lengths, index=index)

    def silence(self, sent: Tensor) -> Tensor:
        """``sent`` [..., P_max] with zeros, in place, where nothing is exchanged."""
        for where in self._slices():
            sent[..., where] = 0.0
        return sent

    def blank(self, vectors: Tensor) -> Tensor:
        """``vectors`` [nodes, P_max] with zeros where submodels are padded."""
        if self.index is None:
            return vectors
        return vectors.masked_fill((self.index < 0).to(vectors.device), 0.0)

    def exchanged(self) -> Tensor | None:
        """Which elements of the padded submodels cross the air, [nodes, P_max]; None: all."""
        if self.index is None and not self.kept:
            return None
        whole = torch.ones(self.nodes, self.spec.size, dtype=torch.bool)
        crossing = whole if self.index is None else self.index >= 0
        for where in self._slices():
            crossing[:, where] = False
        return None if crossing.all() else crossing

    def _slices(self) -> list[slice]:
        """Where the parameters lie that are not exchanged."""
        starts, shapes = self.spec.offsets, self.spec.shapes
        return [slice(starts[n], starts[n] + math.prod(shapes[n])) for n in self.kept]

    def gather(self, full: Tensor) -> Tensor:
        """Submodels [nodes, P_max] of the vector ``full`` [P]; padding is zero."""
        if self.index is None:
            return full.expand(self.nodes, -1).clone()
        padded = torch.cat([full, full.new_zeros(1)])  # index -1 meets the zero at the end
        return padded[self.index.to(full.device)]

    def gather_one(self, full: Tensor, node: int) -> Tensor:
        """The submodel [P_max] of ``node``, of the vector ``full`` [P]; padding is zero."""
        if self.index is None:
            return full
        padded = torch.cat([full, full.new_zeros(1)])
        return padded[self.index[node].to(full.device)]

    def gather_each(self, full: Tensor) -> Tensor:
        """Submodels [nodes, P_max] of each node's own vector ``full`` [nodes, P]."""
        if self.index is None:
            return full.clone()
        padded = torch.cat([full, full.new_zeros(self.nodes, 1)], 1)
        return padded.gather(1, self.index.to(full.device) % padded.shape[1])

    def gather_from(self, full: Tensor, node: IntArray) -> Tensor:
        """Submodels [rows, P_max], each of the vector ``full`` [nodes, P] of its node [rows]."""
        assert self.index is not None
        padded = torch.cat([full, full.new_zeros(len(full), 1)], 1)
        rows = torch.from_numpy(node)[:, None].to(full.device)
        return padded[rows, self.index.to(full.device)]

    def spread(self, vectors: Tensor, rows: slice) -> Tensor:
        """``vectors`` [rows, P_max] in full coordinates [rows, P]; zero where uncovered."""
        assert self.index is not None
        full = vectors.new_zeros(len(vectors), self.full_size + 1)  # padding falls on the last one
        full.scatter_(1, self.index[rows].to(vectors.device) % (self.full_size + 1), vectors)
        return full[:, :-1]

    def scatter_each(self, full: Tensor, vectors: Tensor) -> Tensor:
        """``full`` [nodes, P] with what each node has trained in it: ``vectors`` [nodes, P_max]."""
        if self.index is None:
            return vectors
        padded = torch.cat([full, full.new_zeros(self.nodes, 1)], 1)
        padded.scatter_(1, self.index.to(full.device) % padded.shape[1], vectors)
        return padded[:, :-1].contiguous()

    def take(self, full: Tensor, node: int, out: Tensor) -> None:
        """Write what ``node`` trains of ``full`` [P] into ``out`` [P_max]; padding stays."""
        if self.index is None:
            out.copy_(full)
        else:
            there = self.index[node] >= 0
            out[there] = full[self.index[node][there]]

    def merge(self, full: Tensor, vectors: Tensor, weights: Sequence[float]) -> Tensor:
        """Weighted mean over the nodes that cover a coordinate; uncovered ones keep ``full``.

        Disjoint submodels are put in their places, (7); what they share is averaged over the nodes.

        Args:
            full: [P], the vector before the round.
            vectors: [nodes, P_max], one submodel a node.
            weights: [nodes], >= 0; one of 0 covers nothing.

        Returns:
            [P].
        """
        if self.index is None and list(weights) == [1.0]:  # a star: the mean of one, to the bit
            return vectors[0]
        total = full.new_zeros(self.full_size + 1)
        weight = full.new_zeros(self.full_size + 1)
        index = None if self.index is None else self.index.to(full.device)
        for node, share in enumerate(weights):  # in node order, so that sums repeat bit for bit
            where = slice(0, self.full_size) if index is None else index[node]
            total[where] += share * vectors[node]
            weight[where] += share
        total, weight = total[:-1], weight[:-1]
        return covered_mean(total, weight, full)


def extract(partition: Partition, cells: Sequence[Sequence[IntArray]]) -> Submodels:
    """The submodels of cells that hold the given neurons.

    Args:
        partition: what is split.
        cells: per cell, per split layer, neuron numbers, as from ``deal_masks``.
    """
    return extract_neurons(partition.spec, partition.layers, cells)


def extract_neurons(
    spec: ParamSpec, layers: Sequence[Neurons], chosen: Sequence[Sequence[IntArray]]
) -> Submodels:
    """The submodels that hold the chosen neurons of these layers, and all of the others.

    Args:
        spec: the full model's parameters.
        layers: neurons that can be left out.
        chosen: per submodel, per layer, neuron numbers.

    Returns:
        Submodels padded to the widest of each layer; padded neurons have zero weights and,
        behind an activation with act(0) = 0, zero gradients.
    """
    widest = [max(len(numbers[i]) for numbers in chosen) for i in range(len(layers))]
    all_of_them = NeuronMap(spec, tuple(layers))
    padded = ParamSpec(all_of_them.shapes(widest))
    index = np.empty((len(chosen), padded.size), dtype=np.int64)
    for row, numbers in zip(index, chosen, strict=True):
        for name, shape in spec.shapes.items():
            start = padded.offsets[name]
            place = row[start : start + math.prod(padded.shapes[name])]
            stride = math.prod(shape)
            place = place.reshape(padded.shapes[name])
            place[...] = spec.offsets[name]
            for axis, entries in enumerate(shape):
                stride //= entries
                room = (-1,) + (1,) * (len(shape) - axis - 1)
                found = all_of_them.lying.get((name, axis))
                if found is None:
                    place += (stride * np.arange(entries)).reshape(room)
                    continue
                layer_number, repeat = found
                neurons = numbers[layer_number]
                steps = stride * (repeat * neurons[:, None] + np.arange(repeat)).reshape(-1)
                # What no other axis makes positive again: there is nothing of a padded neuron.
                gap = np.full((widest[layer_number] - len(neurons)) * repeat, -2 * spec.size - 1)
                place += np.concatenate([steps, gap]).reshape(room)
    np.maximum(index, -1, out=index)
    return Submodels(
        padded,
        (index >= 0).sum(1),
        torch.from_numpy(index),
        spec.size,
        neurons=tuple(tuple(numbers) for numbers in chosen),
    )
