"""Submodels as indices into the flat vector: extraction, and merging by coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from channels.arrays import IntArray
from wirelessfl.models.submodels.flat import ParamSpec
from wirelessfl.models.submodels.neurons import NeuronMap, Neurons
from wirelessfl.models.submodels.partition import Partition


def covered_mean(
    total: torch.Tensor, weight: torch.Tensor, uncovered: torch.Tensor | float
) -> torch.Tensor:
    """Weighted mean over the submodels that cover a coordinate.

    With equal weights this is RA-Fed's mean, (1/Gamma^i) times their sum. Disjoint submodels are
    inserted at their positions, (7) of HIST; coordinates that all submodels share are averaged.

    Args:
        total: [..., P], sum of weight times value over the covering submodels.
        weight: [..., P], sum of their weights, >= 0; 0 at uncovered coordinates.
        uncovered: values of uncovered coordinates, [..., P] or one number.

    Returns:
        The mean [..., P].
    """
    mean = total / torch.where(weight > 0, weight, 1.0)
    return torch.where(weight > 0, mean, uncovered)


@dataclass(frozen=True)
class Submodels:
    """The submodel of each node of a round.

    Args:
        spec: shapes of a submodel, padded to the widest node.
        lengths: [nodes], number of parameters without padding, which determines bytes and seconds;
            0 at a node that trains nothing.
        places: [nodes, P_max] positions in the full flat vector, -1 for padding; None for the full
            model at every node.
        full_size: P of the full model.
        kept: names of parameters that clients train but never send.
        neurons: per node, per layer, the sorted indices of its neurons; None if the submodels were
            not made from neurons.
        layers: these layers.
        scaled: whether activations are multiplied by full width / own width while clients train.
    """

    spec: ParamSpec
    lengths: IntArray
    places: IntArray | None
    full_size: int
    kept: tuple[str, ...] = ()
    neurons: tuple[tuple[IntArray, ...], ...] | None = None
    layers: tuple[Neurons, ...] = ()
    scaled: bool = False

    @classmethod
    def whole(cls, spec: ParamSpec, nodes: int) -> Submodels:
        """The full model at each of ``nodes`` nodes."""
        return cls(spec, np.full(nodes, spec.size, dtype=np.int64), None, spec.size)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.lengths)

    @cached_property
    def index(self) -> torch.Tensor | None:
        """``places`` as a tensor, in the same memory."""
        return None if self.places is None else torch.from_numpy(self.places)

    def keeping(self, names: Sequence[str]) -> Submodels:
        """The same submodels, but ``names`` are not exchanged and do not count in ``lengths``."""
        kept = tuple(name for name in names if name in self.spec.shapes)
        submodels = replace(self, kept=kept)
        lost = np.zeros_like(self.lengths)
        for where in submodels._slices():
            count = where.stop - where.start
            lost += count if self.places is None else (self.places[:, where] >= 0).sum(1)
        return replace(submodels, lengths=self.lengths - lost)

    def input_factors(self) -> dict[str, torch.Tensor]:
        """Full width / own width of the neurons that a weight reads, [nodes] by name of the weight.

        If a submodel's activations are multiplied by these factors, the sums over its neurons have
        the scale of the full model's, as with inverted dropout. None unless ``scaled``.
        """
        factors: dict[str, torch.Tensor] = {}
        if not self.scaled:
            return factors
        for i, layer in enumerate(self.layers):
            widths = [max(len(numbers[i]), 1) for numbers in self.neurons or ()]
            ratio = layer.width / torch.tensor(widths, dtype=torch.float32)
            factors |= {slot.parameter: ratio for slot in layer.slots if slot.axis == 1}
        return factors

    def only(self, nodes: Sequence[int]) -> Submodels:
        """The same submodels at ``nodes``; the other nodes train nothing."""
        rest = np.setdiff1d(np.arange(self.nodes), nodes)
        lengths = self.lengths.copy()
        lengths[rest] = 0
        if self.places is None:
            return replace(self, lengths=lengths)
        places = self.places.copy()
        places[rest] = -1
        return replace(self, lengths=lengths, places=places)

    def silence(self, sent: torch.Tensor) -> torch.Tensor:
        """Zero the parameters of ``sent`` [..., P_max] that are not exchanged, in place."""
        for where in self._slices():
            sent[..., where] = 0.0
        return sent

    def restore(self, vectors: torch.Tensor, originals: torch.Tensor) -> torch.Tensor:
        """Copy parameters that are not exchanged from ``originals`` to ``vectors``, in place."""
        for where in self._slices():
            vectors[..., where] = originals[..., where]
        return vectors

    def blank(self, vectors: torch.Tensor) -> torch.Tensor:
        """``vectors`` [nodes, P_max] with zeros at padding."""
        if self.index is None:
            return vectors
        return vectors.masked_fill((self.index < 0).to(vectors.device), 0.0)

    def exchanged(self) -> torch.Tensor | None:
        """Whether each element of the padded submodels is exchanged, [nodes, P_max]; None: all."""
        if self.index is None and not self.kept:
            return None
        whole = torch.ones(self.nodes, self.spec.size, dtype=torch.bool)
        exchanged = whole if self.index is None else self.index >= 0
        for where in self._slices():
            exchanged[:, where] = False
        return None if exchanged.all() else exchanged

    def _slices(self) -> list[slice]:
        starts, shapes = self.spec.offsets, self.spec.shapes
        return [slice(starts[n], starts[n] + math.prod(shapes[n])) for n in self.kept]

    def gather(self, full: torch.Tensor) -> torch.Tensor:
        """Submodels [nodes, P_max] of the vector ``full`` [P]; padding is zero."""
        if self.index is None:
            return full.expand(self.nodes, -1).clone()
        padded = torch.cat([full, full.new_zeros(1)])  # index -1 selects the zero at the end
        return padded[self.index.to(full.device)]

    def gather_one(self, full: torch.Tensor, node: int) -> torch.Tensor:
        """The submodel [P_max] of ``node`` from the vector ``full`` [P]; padding is zero."""
        if self.index is None:
            return full
        padded = torch.cat([full, full.new_zeros(1)])
        return padded[self.index[node].to(full.device)]

    def gather_each(self, full: torch.Tensor) -> torch.Tensor:
        """Submodels [nodes, P_max], each from its node's vector in ``full`` [nodes, P]."""
        if self.index is None:
            return full.clone()
        padded = torch.cat([full, full.new_zeros(self.nodes, 1)], 1)
        return padded.gather(1, self.index.to(full.device) % padded.shape[1])

    def gather_from(self, full: torch.Tensor, node: IntArray) -> torch.Tensor:
        """Submodels [rows, P_max], each from the vector of its ``node`` [rows] in ``full``.

        Args:
            full: [nodes, P].
            node: [rows], node of each row.
        """
        assert self.index is not None
        padded = torch.cat([full, full.new_zeros(len(full), 1)], 1)
        rows = torch.from_numpy(node)[:, None].to(full.device)
        return padded[rows, self.index.to(full.device)]

    def spread(self, vectors: torch.Tensor, rows: slice) -> torch.Tensor:
        """``vectors`` [rows, P_max] in full coordinates [rows, P], zero where uncovered."""
        assert self.index is not None
        full = vectors.new_zeros(len(vectors), self.full_size + 1)  # last column: padding
        full.scatter_(1, self.index[rows].to(vectors.device) % (self.full_size + 1), vectors)
        return full[:, :-1]

    def scatter_each(self, full: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """A copy of ``full`` with the coordinates of each node's submodel replaced by ``vectors``.

        Args:
            full: full parameters of each node, [nodes, P].
            vectors: trained submodels [nodes, P_max].
        """
        if self.index is None:
            return vectors
        padded = torch.cat([full, full.new_zeros(self.nodes, 1)], 1)
        padded.scatter_(1, self.index.to(full.device) % padded.shape[1], vectors)
        return padded[:, :-1].contiguous()

    def take(self, full: torch.Tensor, node: int, out: torch.Tensor) -> None:
        """Write the submodel of ``node`` from ``full`` [P] into ``out``; padding is unchanged.

        Args:
            full: [P].
            out: [P_max].
        """
        if self.index is None:
            out.copy_(full)
        else:
            covered = self.index[node] >= 0
            out[covered] = full[self.index[node][covered]]

    def merge(
        self, full: torch.Tensor, vectors: torch.Tensor, weights: Sequence[float]
    ) -> torch.Tensor:
        """Weighted mean over the nodes that cover a coordinate, ``full`` where none does.

        Disjoint submodels are inserted at their positions, (7) of HIST; shared coordinates are
        averaged over the nodes.

        Args:
            full: [P], the vector before the merge.
            vectors: [nodes, P_max], one submodel per node.
            weights: [nodes], >= 0; a node of weight 0 covers nothing.

        Returns:
            The merged vector [P].
        """
        if self.index is None and list(weights) == [1.0]:  # a single node: no rounding
            return vectors[0]
        total = full.new_zeros(self.full_size + 1)
        weight = full.new_zeros(self.full_size + 1)
        index = None if self.index is None else self.index.to(full.device)
        for node, share in enumerate(weights):  # a fixed order makes sums bit-reproducible
            where = slice(0, self.full_size) if index is None else index[node]
            total[where] += share * vectors[node]
            weight[where] += share
        total, weight = total[:-1], weight[:-1]
        return covered_mean(total, weight, full)


def extract(partition: Partition, cells: Sequence[Sequence[IntArray]]) -> Submodels:
    """The submodels of cells with the given neurons.

    Args:
        partition: the model's partitioned layers.
        cells: per cell, per partitioned layer, neuron indices, as from ``deal_masks``.
    """
    return extract_neurons(partition.spec, partition.layers, cells)


def extract_neurons(
    spec: ParamSpec, layers: Sequence[Neurons], chosen: Sequence[Sequence[IntArray]]
) -> Submodels:
    """The submodels with the chosen neurons of some layers and all neurons of the other layers.

    Args:
        spec: the full model's parameters.
        layers: layers with removable neurons.
        chosen: per submodel, per layer, neuron indices.

    Returns:
        Submodels padded to the maximum width of each layer; padding neurons have zero weights and,
        with an activation that satisfies act(0) = 0, zero gradients.
    """
    widest = [max(len(numbers[i]) for numbers in chosen) for i in range(len(layers))]
    all_of_them = NeuronMap(spec, tuple(layers))
    padded = ParamSpec(all_of_them.shapes(widest))
    index = np.empty((len(chosen), padded.size), dtype=np.int64)
    for row, numbers in zip(index, chosen, strict=True):
        for name, shape in spec.shapes.items():
            start = padded.offsets[name]
            entry = row[start : start + math.prod(padded.shapes[name])]
            stride = math.prod(shape)
            entry = entry.reshape(padded.shapes[name])
            entry[...] = spec.offsets[name]
            for axis, entries in enumerate(shape):
                stride //= entries
                room = (-1,) + (1,) * (len(shape) - axis - 1)
                place = all_of_them.by_axis.get((name, axis))
                if place is None:
                    entry += (stride * np.arange(entries)).reshape(room)
                    continue
                layer_number, repeat = place
                neurons = numbers[layer_number]
                steps = stride * (repeat * neurons[:, None] + np.arange(repeat)).reshape(-1)
                # Entries of padding neurons are so negative that no other axis makes them positive.
                gap = np.full((widest[layer_number] - len(neurons)) * repeat, -2 * spec.size - 1)
                entry += np.concatenate([steps, gap]).reshape(room)
    np.maximum(index, -1, out=index)
    return Submodels(
        padded,
        (index >= 0).sum(1),
        index,
        spec.size,
        neurons=tuple(tuple(numbers) for numbers in chosen),
        layers=tuple(layers),
    )


def sizes_of(submodels: Submodels) -> list[int]:
    """Number of neurons of each node in the widest partitioned layer; empty for full models."""
    if submodels.neurons is None or not submodels.layers:
        return []
    widest = max(range(len(submodels.layers)), key=lambda i: submodels.layers[i].width)
    return [len(numbers[widest]) for numbers in submodels.neurons]


def largest_part(submodels: Submodels) -> float:
    """The largest submodel of N nodes relative to equal ones, m = N max_j p_j / sum_j p_j.

    It is 1 for full models and for equal sizes, whether submodels overlap or not, as in a pilot
    with these settings. Sizes that differ by one neuron, because neurons are not a multiple of
    nodes, are equal ones.
    """
    sizes = sizes_of(submodels)
    if not sizes or max(sizes) - min(sizes) <= 1:
        return 1.0
    return max(sizes) * len(sizes) / sum(sizes)
