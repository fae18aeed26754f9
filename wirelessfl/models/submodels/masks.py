"""Masks: the neurons that each client of a round trains, given their number.

For every kind of mask a layer's neurons are placed on a circle, and a client's mask is an arc:

=========  ==================================  ==========================================
kind       order of the circle                 arc of a client
=========  ==================================  ==========================================
ordered    by index                            starts at the first neuron (HeteroFL)
rolling    by index                            starts at the round's index (FedRolex)
random     random per client and round         starts at the first neuron
static     random per client, fixed            starts at the first neuron
covered    random per round, common            starts at the end of the previous client's arc
crossed    random per round, common            by column or row of a grid, see below
partition  random per round, common            its share of the circle plus the overlap (HIST)
=========  ==================================  ==========================================

A client has each neuron at most once. The coverages of a layer's W neurons therefore sum to the
total of the clients' counts, and the minimum coverage is at most the floor of that total divided by
W. Consecutive arcs (``covered``) cover each neuron floor or ceil of that ratio times.

A weight between two hidden layers is covered by the clients that hold the neuron on either side, so
masks that cover every neuron can leave weights uncovered. ``crossed`` masks cover every weight of a
chain of layers: a group of clients with equal widths forms a grid of a columns and b rows; a
client's arc in the layers 0, 2, ... depends on its column, in the layers 1, 3, ... on its row. A
pair of neurons of neighbouring layers is then covered by all clients of some columns that are also
in some rows. Clients that are too few for a grid that covers every weight fill the diagonals of
such a grid: they cover as many neurons as ``covered`` masks, and more pairs.

HeteroFL: Diao, Ding and Tarokh, ICLR 2021. FedRolex: Alam et al., NeurIPS 2022. HIST: Fang, Han and
Brinton; its footnote 3 describes partitions with partial overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Literal, get_args

import numpy as np

from channels.arrays import IntArray
from channels.streams import Name, Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels.neurons import Neurons
from wirelessfl.models.submodels.partition import share_out

Masks = Literal["ordered", "rolling", "random", "static", "covered", "crossed", "partition"]

RANGES_SHOWN = 8  # ranges of neurons listed in an error; random masks can leave hundreds of gaps


@dataclass(frozen=True)
class Dealing:
    """Inputs of ``deal_masks`` in addition to the numbers of neurons.

    Args:
        number: index of the round, from 0.
        clients: [senders], indices of the participating clients, in order.
        round: random stream of this round.
        run: random stream of the whole run.
        overlap: for ``partition``: number of neurons that a mask shares with the following masks,
            relative to the mask's size, >= 0.

    Raises:
        ConfigError: ``overlap`` is negative or not finite.
        ValueError: ``number`` is negative, or a client appears twice.
    """

    number: int
    clients: IntArray
    round: Stream
    run: Stream
    overlap: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < math.inf:
            raise ConfigError(f"overlap is {self.overlap}: give a finite number >= 0.")
        if self.number < 0:
            raise ValueError(f"number is {self.number}: give a round's index >= 0.")
        if len(np.unique(self.clients)) != len(self.clients):
            raise ValueError("clients contains a client twice: list each client once.")


def deal_masks(
    kind: Masks, layers: Sequence[Neurons], counts: IntArray, dealing: Dealing
) -> list[list[IntArray]]:
    """Choose the neurons of each client.

    In a layer with blocks, each block is treated separately, and a client has the same number of
    neurons of every block. The masks ``ordered``, ``rolling``, ``random`` and ``static`` of a
    client do not depend on the other participants.

    Args:
        kind: see the module's docstring. A client's ``static`` masks of different sizes are nested.
        layers: layers whose neurons are chosen.
        counts: [senders, layers], number of neurons of each client, multiples of the layer's
            ``blocks`` from ``blocks`` to ``width``. For ``partition`` any sizes >= 0 with a
            positive sum over the clients: mask sizes are proportional to them.
        dealing: the round, its clients and the random streams.

    Returns:
        Per client, per layer, the sorted neuron indices. In a ``partition``, if a layer (or block)
        has fewer neurons than there are clients, some clients have none of them.
    """
    if kind not in get_args(Masks):
        raise ValueError(f"masks is {kind!r}: choose one of {', '.join(get_args(Masks))}.")
    counts = np.asarray(counts, dtype=np.int64)
    _check_counts(kind, layers, counts, len(dealing.clients))
    chosen: list[list[IntArray]] = [[] for _ in dealing.clients]
    for place, layer in enumerate(layers):
        starts, lengths = _arcs(kind, layers, counts, place, dealing)
        circles = _circles(kind, layer, dealing)
        for mask, start, length, circle in zip(chosen, starts, lengths, circles, strict=False):
            held = np.zeros(layer.width, dtype=bool)  # faster than a sort
            held[circle.take(np.arange(start, start + length), axis=1, mode="wrap")] = True
            mask.append(np.flatnonzero(held).astype(np.int64, copy=False))
    return chosen


def coverage(chosen: Sequence[Sequence[IntArray]], layers: Sequence[Neurons]) -> list[IntArray]:
    """Number of clients that have each neuron, per layer [width].

    Args:
        chosen: per client, per layer, neuron indices, as from ``deal_masks``.
        layers: layers of the neurons.
    """
    held = []
    for i, layer in enumerate(layers):
        numbers = np.concatenate([np.empty(0, np.int64), *(mask[i] for mask in chosen)])
        held.append(np.bincount(numbers, minlength=layer.width).astype(np.int64, copy=False))
    return held


def check_coverage(
    chosen: Sequence[Sequence[IntArray]],
    layers: Sequence[Neurons],
    min_clients: int,
    *,
    clients: int,
    number: int,
    cell: int | None = None,
) -> None:
    """Raise if a neuron is covered by fewer than ``min_clients`` clients.

    Args:
        chosen: per client, per layer, neuron indices, as from ``deal_masks``.
        layers: layers of the neurons.
        min_clients: min_coverage, the Gamma* in RA-Fed's rate.
        clients: number of participating clients, for the message.
        number: round number, from 1, for the message.
        cell: the clients' cell, for the message; None without cells.
    """
    held = coverage(chosen, layers)
    lowest = [int(times.min()) for times in held]
    if not held or min(lowest) >= min_clients:
        return
    worst = int(np.argmin(lowest))
    by = f"only {lowest[worst]}" if lowest[worst] else "none"
    rarest = np.flatnonzero(held[worst] == lowest[worst]).astype(np.int64, copy=False)
    single = len(rarest) == 1
    where = "" if cell is None else f"cell {cell} in "
    raise ConfigError(
        f"neuron{'' if single else 's'} {_ranges(rarest)} of layer {layers[worst].name!r} "
        f"{'is' if single else 'are'} covered by {by} of the {clients} "
        f"client{'' if clients == 1 else 's'} of {where}round {number}, but min_coverage is "
        f"{min_clients}. Increase capacities or the number of clients per round, or choose masks "
        '"covered", which have the most even coverage.'
    )


def _check_counts(kind: Masks, layers: Sequence[Neurons], counts: IntArray, senders: int) -> None:
    if counts.shape != (senders, len(layers)):
        raise ValueError(
            f"counts has shape {list(counts.shape)}: give [{senders}, {len(layers)}], clients by "
            "layers."
        )
    for layer, numbers in zip(layers, counts.T, strict=True):
        if kind == "partition":
            if (numbers < 0).any() or (senders and not numbers.any()):
                raise ValueError(
                    f"counts of layer {layer.name!r} contain a negative number or only zeros: give "
                    "sizes >= 0, not all 0."
                )
            continue
        wrong = (numbers < layer.blocks) | (numbers > layer.width) | (numbers % layer.blocks > 0)
        if wrong.any():
            raise ValueError(
                f"counts[{np.argmax(wrong)}] of layer {layer.name!r} is {numbers[wrong][0]}: give "
                f"a multiple of {layer.blocks} from {layer.blocks} to {layer.width}."
            )


def _arcs(
    kind: Masks, layers: Sequence[Neurons], counts: IntArray, place: int, dealing: Dealing
) -> tuple[IntArray, IntArray]:
    """Starts and lengths [senders] of the clients' arcs in a layer, equal for all blocks."""
    layer, numbers = layers[place], counts[:, place]
    size = layer.width // layer.blocks
    lengths = numbers // layer.blocks
    if kind == "rolling":
        return np.full_like(lengths, dealing.number % size), lengths
    if kind == "crossed":
        return crossed_starts(layers, counts)[:, place], lengths
    if kind == "covered":
        return np.cumsum(lengths) - lengths, lengths
    if kind == "partition" and len(numbers):
        shares = np.array(share_out(numbers.tolist(), size), dtype=np.int64)
        wider = shares + np.rint(min(dealing.overlap, size) * shares)  # a circle has `size` neurons
        return np.cumsum(shares) - shares, np.minimum(wider, size).astype(np.int64)
    return np.zeros_like(lengths), lengths


def _circles(kind: Masks, layer: Neurons, dealing: Dealing) -> Iterator[IntArray]:
    """Neuron indices [blocks, width/blocks] in circle order, for each client."""
    if kind == "random" or kind == "static":
        stream = dealing.round if kind == "random" else dealing.run
        for client in dealing.clients:
            yield _shuffled(layer, stream.child("mask", layer.name, "client", client), "block")
    elif kind == "ordered" or kind == "rolling":
        numbered = np.arange(layer.width, dtype=np.int64)
        yield from repeat(numbered.reshape(layer.blocks, -1))
    else:
        yield from repeat(_shuffled(layer, dealing.round.child("mask", layer.name)))


def _shuffled(layer: Neurons, stream: Stream, *names: Name) -> IntArray:
    """The layer's neurons [blocks, width/blocks], each block in random order.

    A single block draws from ``stream``, several blocks draw from its children.
    """
    size = layer.width // layer.blocks
    streams = [stream]
    if layer.blocks > 1:
        streams = [stream.child(*names, block) for block in range(layer.blocks)]
    orders = [
        child.generator().permutation(size) + block * size for block, child in enumerate(streams)
    ]
    return np.stack(orders).astype(np.int64, copy=False)


def _ranges(numbers: IntArray) -> str:
    """Format sorted numbers as "150 to 199 and 203"; only the first ranges are listed."""
    ends = [0, *(np.flatnonzero(np.diff(numbers) > 1) + 1).tolist(), len(numbers)]
    runs = [(int(numbers[a]), int(numbers[b - 1])) for a, b in pairwise(ends)]
    words = [f"{a}" if a == b else f"{a} to {b}" for a, b in runs[:RANGES_SHOWN]]
    hidden = sum(b - a + 1 for a, b in runs[RANGES_SHOWN:])
    if hidden:
        words.append(f"{hidden} more")
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


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
    for number in range(int(group.max(initial=-1)) + 1):
        members = np.flatnonzero(group.reshape(-1) == number)
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


def _columns(clients: int, full: IntArray, widths: IntArray) -> int:
    """Columns of the grid of at most ``clients`` places with the largest guaranteed coverage.

    0 if no grid guarantees that every weight is covered.
    """

    def guaranteed(columns: int, rows: int) -> tuple[int, int]:
        times = np.where(np.arange(len(full)) % 2 == 0, columns, rows) * widths // full
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
