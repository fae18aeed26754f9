"""Submodels of individual clients, each with its own neurons; coverage of weights by clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels.extract import Submodels, extract_neurons
from wirelessfl.models.submodels.neurons import NeuronMap

SOME = 32  # maximum number of clients per job, unless the executor's chunk is larger


@dataclass(frozen=True, eq=False)
class ClientSubmodels:
    """The submodel of each client of a round.

    Positions in the full vector are computed only for the clients that are about to train, so
    memory does not grow with the number of clients.

    Args:
        neurons: the model's removable neurons.
        chosen: per client, per layer of ``neurons``, the sorted indices of the client's neurons.
        scaled: whether activations are multiplied by full width / own width while clients train.
    """

    neurons: NeuronMap
    chosen: Sequence[Sequence[IntArray]]
    scaled: bool = False

    @cached_property
    def widths(self) -> IntArray:
        """Number of neurons in each layer, [clients, layers]."""
        return np.array(
            [[len(numbers) for numbers in layers] for layers in self.chosen], dtype=np.int64
        )

    @cached_property
    def lengths(self) -> IntArray:
        """Number of parameters of each submodel, [clients]."""
        shapes, inverse = np.unique(self.widths, axis=0, return_inverse=True)
        counts = np.array(
            [self.neurons.parameters(widths) for widths in shapes.tolist()], dtype=np.int64
        )
        return np.asarray(counts[inverse.reshape(-1)])

    def of(self, rows: IntArray) -> Submodels:
        """The submodels of the clients in ``rows``, padded to the widest of them."""
        chosen = [self.chosen[row] for row in rows.tolist()]
        submodels = extract_neurons(self.neurons.spec, self.neurons.layers, chosen)
        return replace(submodels, scaled=self.scaled)

    def of_rows(self, rows: IntArray) -> ClientSubmodels:
        """The submodels of some of the clients, without padding."""
        return replace(self, chosen=[self.chosen[row] for row in rows.tolist()])

    def batches(self, padding: float, max_rows: int) -> list[IntArray]:
        """Group the clients into batches of similar widths with little padding.

        Args:
            padding: maximum padded fraction of a batch's parameters; 0 allows only equal widths.
            max_rows: maximum number of rows per batch.

        Returns:
            Rows of each batch, in increasing order.
        """
        order = np.lexsort((*self.widths.T, self.lengths))
        batches: list[list[int]] = []
        widest, filled = np.zeros_like(self.widths[0]), 0
        for row in order.tolist():
            wider = np.maximum(widest, self.widths[row])
            if batches:
                room = (len(batches[-1]) + 1) * self.neurons.parameters(wider.tolist())
                idle = 1 - (filled + int(self.lengths[row])) / room
                if idle <= padding and len(batches[-1]) < max_rows:
                    batches[-1].append(row)
                    widest, filled = wider, filled + int(self.lengths[row])
                    continue
            batches.append([row])
            widest, filled = self.widths[row], int(self.lengths[row])
        return [np.sort(np.array(rows, dtype=np.int64)) for rows in batches]

    def covers(self, rows: IntArray) -> torch.Tensor:
        """Coordinates of the full vector that each of these clients trains, [rows, P] boolean."""
        spec, held = self.neurons.spec, [layer[rows] for layer in self._held]
        covered = torch.ones(len(rows), spec.size, dtype=torch.bool)
        for name, shape in spec.shapes.items():
            start = spec.offsets[name]
            part = covered[:, start : start + math.prod(shape)].view(len(rows), *shape)
            for axis in range(len(shape)):
                layer, repeat = self.neurons.by_axis.get((name, axis), (None, 1))
                if layer is not None:
                    kept = held[layer].repeat_interleave(repeat, 1)
                    after = (1,) * (len(shape) - axis - 1)
                    part &= kept.view(len(rows), *(1,) * axis, kept.shape[1], *after)
        return covered

    def cover(
        self, node: IntArray, weights: Sequence[float], nodes: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute each coordinate's coverage: relative weight and number of covering clients.

        An entry of a weight matrix is covered by clients that have both its output neuron and its
        input neuron. One matrix product per parameter therefore counts all clients.

        Args:
            node: [clients], node of each client.
            weights: [clients]; at each node they sum to 1 unless all are 0.
            nodes: number of nodes.

        Returns:
            Weight [nodes, P], exactly 1 if every client of positive weight covers the coordinate;
            number of clients Gamma^i [nodes, P] int32.
        """
        spec, share = self.neurons.spec, np.asarray(weights, dtype=np.float64)
        weight, count = torch.zeros(nodes, spec.size), torch.zeros(nodes, spec.size).int()
        for number in range(nodes):
            rows = np.flatnonzero((node == number) & (share > 0))
            shares = torch.from_numpy(share[rows])[:, None]
            held = [layer[rows].double() for layer in self._held]
            for name, shape in spec.shapes.items():
                where = slice(spec.offsets[name], spec.offsets[name] + math.prod(shape))
                produced, read = (self._along(name, axis, held, len(rows)) for axis in (0, 1))
                count[number, where] = self._spread(name, produced.T @ read).int()
                weight[number, where] = self._spread(name, (shares * produced).T @ read).float()
            weight[number, count[number] == len(rows)] = float(len(rows) > 0)
        return weight, count

    @cached_property
    def _held(self) -> list[torch.Tensor]:
        """Per layer, whether each client has each neuron, [clients, width] boolean."""
        held = []
        for i, width in enumerate(self.neurons.widths):
            layer = torch.zeros(len(self.chosen), width, dtype=torch.bool)
            for row, layers in zip(layer, self.chosen, strict=True):
                row[torch.from_numpy(layers[i])] = True
            held.append(layer)
        return held

    def _along(
        self, name: str, axis: int, held: Sequence[torch.Tensor], clients: int
    ) -> torch.Tensor:
        """Per client, 0/1 for each neuron along an axis; ones [clients, 1] if none is removable."""
        layer, _ = self.neurons.by_axis.get((name, axis), (None, 1))
        return torch.ones(clients, 1, dtype=torch.float64) if layer is None else held[layer]

    def _spread(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Expand values per neuron of axes 0 and 1 (size 1 if none) to a flat parameter."""
        shape = self.neurons.spec.shapes[name]
        for axis in (0, 1):
            _, repeat = self.neurons.by_axis.get((name, axis), (None, 1))
            values = values.repeat_interleave(repeat, axis)
        values = values.reshape(*values.shape[: len(shape)], *(1,) * (len(shape) - 2))
        return values.expand(shape).reshape(-1)


def weight_coverage_bound(neurons: NeuronMap, widths: IntArray) -> tuple[int, str]:
    """The largest minimum coverage of a parameter that any masks of these widths can have.

    Client n covers w_n v_n of the W V weights between two layers, w_n and v_n neurons wide. All
    masks therefore cover some weight at most floor(sum_n w_n v_n / (W V)) times.

    Args:
        widths: [clients, layers], number of neurons of each client.

    Returns:
        The bound, and the name of the parameter that sets it. All clients hold parameters without
        removable neurons.
    """
    bound, worst = len(widths), next(iter(neurons.spec.shapes))
    for name, shape in neurons.spec.shapes.items():
        held = np.ones(len(widths), dtype=np.int64)
        full = 1
        for axis in range(len(shape)):
            layer, _ = neurons.by_axis.get((name, axis), (None, 1))
            if layer is not None:
                held *= widths[:, layer]
                full *= neurons.widths[layer]
        if int(held.sum()) // full < bound:
            bound, worst = int(held.sum()) // full, name
    return bound, worst


def check_weight_coverage(
    submodels: ClientSubmodels,
    min_clients: int,
    *,
    number: int,
    cell: int | None = None,
    advice: str = "",
) -> None:
    """Raise if a parameter has an entry that fewer than ``min_clients`` clients cover.

    Args:
        submodels: those of the clients of a round, or of one of its cells.
        min_clients: the required coverage, Gamma* in RA-Fed's rate.
        number: round number, from 1, for the message.
        cell: the clients' cell, for the message; None without cells.
        advice: a choice of masks that cover weights more evenly, for the message.
    """
    clients, spec = len(submodels.chosen), submodels.neurons.spec
    node = np.zeros(clients, dtype=np.int64)
    _, count = submodels.cover(node, [1 / max(clients, 1)] * clients, 1)
    lowest = {name: int(view.min()) for name, view in spec.views(count[0]).items()}
    name = min(lowest, key=lambda one: lowest[one])
    if lowest[name] >= min_clients:
        return
    bound, tightest = weight_coverage_bound(submodels.neurons, submodels.widths)
    where = "" if cell is None else f"cell {cell} in "
    remedy = "increase capacities or the number of clients per round"
    if bound >= min_clients:
        remedy = advice + remedy
    else:
        name = tightest  # it has such entries under all masks
        remedy = f"no masks of these widths cover all entries more than {bound} times: {remedy}"
    raise ConfigError(
        f"some entries of {name!r} are covered by {lowest[name]} of the {clients} clients of "
        f"{where}round {number}, but min_coverage is {min_clients}: {remedy}."
    )
