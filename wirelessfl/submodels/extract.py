"""Submodels as an index into the flat vector: taken out, trained, merged by coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from wirelessfl.submodels.flat import ParamSpec
from wirelessfl.submodels.partition import IntArray, Partition


@dataclass(frozen=True)
class Submodels:
    """What each node of a round trains.

    Args:
        spec: shapes of a submodel, padded to the widest node.
        lengths: [nodes], true numbers of parameters; bytes and seconds count these.
        index: [nodes, P_max] positions in the full flat vector, -1 where padded; None for the
            whole model at every node.
        full_size: P of the full model.
        kept: names of parameters that clients train and never send.
    """

    spec: ParamSpec
    lengths: IntArray
    index: Tensor | None
    full_size: int
    kept: tuple[str, ...] = ()

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
            own = where.stop - where.start
            lost += own if self.index is None else (self.index[:, where] >= 0).sum(1).numpy()
        return replace(found, lengths=self.lengths - lost)

    def silence(self, sent: Tensor) -> Tensor:
        """``sent`` [..., P_max] with zeros, in place, where nothing is exchanged."""
        for where in self._slices():
            sent[..., where] = 0.0
        return sent

    def blank(self, parts: Tensor) -> Tensor:
        """``parts`` [nodes, P_max] with zeros where submodels are padded."""
        if self.index is None:
            return parts
        return parts.masked_fill((self.index < 0).to(parts.device), 0.0)

    def exchanged(self) -> Tensor | None:
        """Which elements of the padded submodels cross the air, [nodes, P_max]; None: all."""
        if self.index is None and not self.kept:
            return None
        whole = torch.ones(self.nodes, self.spec.size, dtype=torch.bool)
        sent = whole if self.index is None else self.index >= 0
        for where in self._slices():
            sent[:, where] = False
        return None if sent.all() else sent

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

    def gather_each(self, full: Tensor) -> Tensor:
        """Submodels [nodes, P_max] of each node's own vector ``full`` [nodes, P]."""
        if self.index is None:
            return full.clone()
        padded = torch.cat([full, full.new_zeros(self.nodes, 1)], 1)
        return padded.gather(1, self.index.to(full.device) % padded.shape[1])

    def scatter_each(self, full: Tensor, parts: Tensor) -> Tensor:
        """``full`` [nodes, P] with what each node has trained, ``parts`` [nodes, P_max], in it."""
        if self.index is None:
            return parts
        padded = torch.cat([full, full.new_zeros(self.nodes, 1)], 1)
        padded.scatter_(1, self.index.to(full.device) % padded.shape[1], parts)
        return padded[:, :-1].contiguous()

    def take(self, full: Tensor, node: int, out: Tensor) -> None:
        """Write what ``node`` trains of ``full`` [P] into ``out`` [P_max]; padding stays."""
        if self.index is None:
            out.copy_(full)
        else:
            there = self.index[node] >= 0
            out[there] = full[self.index[node][there]]

    def merge(self, full: Tensor, parts: Tensor, weights: Sequence[float]) -> Tensor:
        """Weighted mean over the nodes that cover a coordinate; uncovered ones keep ``full``.

        Disjoint parts are put in their places, (7); shared parts are averaged over the nodes.

        Args:
            full: [P], the vector before the round.
            parts: [nodes, P_max], one submodel a node.
            weights: [nodes], >= 0; one of 0 covers nothing.

        Returns:
            [P].
        """
        total = full.new_zeros(self.full_size + 1)
        weight = full.new_zeros(self.full_size + 1)
        index = None if self.index is None else self.index.to(full.device)
        for node, share in enumerate(weights):  # in node order, so that sums repeat bit for bit
            where = slice(0, self.full_size) if index is None else index[node]
            total[where] += share * parts[node]
            weight[where] += share
        total, weight = total[:-1], weight[:-1]
        return torch.where(weight > 0, total / weight.clamp(min=1e-30), full)


def extract(partition: Partition, cells: Sequence[Sequence[IntArray]]) -> Submodels:
    """The submodels that hold the given neurons.

    Args:
        partition: what is split.
        cells: per cell, per split layer, neuron numbers, as from ``deal_neurons``.

    Returns:
        Submodels padded to the widest cell of each layer; padded neurons have zero weights and,
        behind an activation with act(0) = 0, zero gradients.
    """
    spec = partition.spec
    widest = [max(len(cell[i]) for cell in cells) for i in range(len(partition.layers))]
    shapes = {name: list(shape) for name, shape in spec.shapes.items()}
    axes: dict[str, list[tuple[int, int]]] = {}  # name -> (axis, split layer)
    for i, layer in enumerate(partition.layers):
        for name, axis in (
            (f"{layer.producer}.weight", 0),
            (f"{layer.producer}.bias", 0),
            (f"{layer.consumer}.weight", 1),
        ):
            if name in shapes:
                shapes[name][axis] = widest[i]
                axes.setdefault(name, []).append((axis, i))
    rows = []
    for cell in cells:
        pieces = []
        for name, shape in spec.shapes.items():
            position = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
            position += spec.offsets[name]
            for axis, i in axes.get(name, []):
                position = position.take(cell[i], axis)
                room = [(0, 0)] * position.ndim
                room[axis] = (0, widest[i] - len(cell[i]))
                position = np.pad(position, room, constant_values=-1)
            pieces.append(position.reshape(-1))
        rows.append(np.concatenate(pieces))
    index = np.stack(rows)
    padded = ParamSpec({name: tuple(shape) for name, shape in shapes.items()})
    return Submodels(padded, (index >= 0).sum(1), torch.from_numpy(index), spec.size)
