"""Coverage of weights: how many clients hold both neurons of a connection.

A weight between two hidden layers is covered by the clients that hold the neuron on either side.
Masks that cover every neuron can therefore leave weights uncovered. ``crossed`` masks cover every
weight of a chain of layers: a group of clients with equal widths forms a grid of a columns and b
rows; a client's arc in the layers 0, 2, ... depends on its column, in the layers 1, 3, ... on its
row. A pair of neurons of neighbouring layers is then covered by all clients of some columns that
are also in some rows. Clients that are too few for a grid that covers every weight fill the
diagonals of such a grid: they cover as many neurons as ``covered`` masks, and more pairs.

Bound: client n covers w_n v_n of the W V weights between two layers, w_n and v_n neurons wide. All
masks therefore cover some weight at most floor(sum_n w_n v_n / (W V)) times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels.client_submodels import ClientSubmodels
from wirelessfl.models.submodels.neurons import NeuronMap, Neurons


def weight_coverage_bound(neurons: NeuronMap, widths: IntArray) -> tuple[int, str]:
    """The largest minimum coverage of a parameter that any masks of these widths can have.

    Args:
        neurons: neurons of the full model.
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


def crossed_starts(layers: Sequence[Neurons], counts: IntArray) -> IntArray:
    """Starts [senders, layers] of the arcs of ``crossed`` masks on the circle of each layer.

    Args:
        layers: layers whose neurons are chosen, in the order of computation.
        counts: [senders, layers], number of neurons of each client.
    """
    full = np.array([layer.width for layer in layers], dtype=np.int64)
    blocks = np.array([layer.blocks for layer in layers], dtype=np.int64)
    starts = np.zeros_like(counts)
    even = np.arange(len(layers)) % 2 == 0
    begin = np.zeros_like(full)  # of the next clients without a grid, behind the previous ones
    _, group = np.unique(counts, axis=0, return_inverse=True)
    for one in range(int(group.max(initial=-1)) + 1):
        members = np.flatnonzero(group.reshape(-1) == one)
        arcs = counts[members[0]] // blocks
        columns = _columns(len(members), full, counts[members[0]])
        place = np.arange(len(members))
        if columns:
            steps = np.where(even, (place % columns)[:, None], (place // columns)[:, None])
            starts[members] = steps * arcs
        else:
            starts[members] = begin + _diagonals(place, -(-full // counts[members[0]])) * arcs
            begin += len(members) * arcs
    return starts


def _columns(clients: int, full: IntArray, wanted: IntArray) -> int:
    """Columns of the grid of at most ``clients`` places with the largest guaranteed coverage.

    0 if no grid guarantees that every weight is covered.
    """

    def guaranteed(columns: int, rows: int) -> tuple[int, int]:
        times = np.where(np.arange(len(full)) % 2 == 0, columns, rows) * wanted // full
        sides = [side.min() for side in (times[::2], times[1::2]) if len(side)]
        return int(np.prod(sides)), columns * rows

    grids = [(columns, clients // columns) for columns in range(1, clients + 1)]
    best = max(grids, key=lambda grid: guaranteed(*grid))
    return best[0] if guaranteed(*best)[0] else 0


def _diagonals(place: IntArray, arcs: IntArray) -> IntArray:
    """Steps [clients, layers] along the diagonals of the smallest grid that covers every weight."""
    columns, rows = int(arcs[::2].max()), int(arcs[1::2].max(initial=1))
    column, row = place % columns, (place + place // math.lcm(columns, rows)) % rows
    return np.where(np.arange(len(arcs)) % 2 == 0, column[:, None], row[:, None])


def check_weight_coverage(
    found: ClientSubmodels,
    min_clients: int,
    *,
    number: int,
    cell: int | None = None,
    advice: str = "",
) -> None:
    """Raise if a parameter has an entry that fewer than ``min_clients`` clients cover.

    Args:
        found: the submodels of the clients of a round, or of one of its cells.
        min_clients: the required coverage, Gamma* in RA-Fed's rate.
        number: round number, from 1, for the message.
        cell: the clients' cell, for the message; None without cells.
        advice: a choice of masks that cover weights more evenly, for the message.

    Raises:
        ConfigError: the coverage is too low; the message names the parameter, and its bound for
            masks of these widths if that is too low as well.
    """
    clients, spec = len(found.chosen), found.neurons.spec
    node = np.zeros(clients, dtype=np.int64)
    _, count = found.cover(node, [1 / max(clients, 1)] * clients, 1)
    lowest = {name: int(view.min()) for name, view in spec.views(count[0]).items()}
    name = min(lowest, key=lambda one: lowest[one])
    if lowest[name] >= min_clients:
        return
    bound, tightest = weight_coverage_bound(found.neurons, found.widths)
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
