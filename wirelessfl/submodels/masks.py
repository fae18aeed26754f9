"""Which neurons each client of a round holds, given how many.

Every kind of mask is an arc of a circle on which a layer's neurons lie:

=========  ==================================  ==========================================
kind       order of the circle                 arc of a client
=========  ==================================  ==========================================
ordered    as numbered                         from the first (HeteroFL)
rolling    as numbered                         from the round's number on (FedRolex)
random     each client's own, afresh a round   from the first
static     each client's own, for the run      from the first
covered    one for all, afresh a round         from where the client before ended
partition  one for all, afresh a round         its share of the circle, and some beyond (HIST)
=========  ==================================  ==========================================

A client holds a neuron once, so the coverages of a layer's W neurons sum to the clients' counts,
and no masks cover all of them more often than the floor of that sum over W. Arcs laid end to end
(``covered``) cover each neuron the floor or the ceil of it.

HeteroFL: Diao, Ding and Tarokh, ICLR 2021. FedRolex: Alam et al., NeurIPS 2022. HIST: Fang, Han and
Brinton; its footnote 3 is on partitions with partial overlaps.
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
from wirelessfl.errors import ConfigError
from wirelessfl.submodels.neurons import Neurons
from wirelessfl.submodels.partition import share_out

Masks = Literal["ordered", "rolling", "random", "static", "covered", "partition"]

RANGES_SHOWN = 8  # of uncovered neurons, in an error: random masks leave hundreds of gaps


@dataclass(frozen=True)
class Dealing:
    """What a mask may depend on, beside the number of neurons.

    Args:
        number: of the round, from 0.
        clients: [senders], numbers of the clients that take part, in order.
        round: randomness of this round.
        run: randomness of the whole run.
        overlap: of ``partition``: neurons that a mask shares with those behind it, in units of its
            own size, >= 0.

    Raises:
        ConfigError: overlap is negative, infinite or no number.
        ValueError: the round's number is negative, or a client stands there twice.
    """

    number: int
    clients: IntArray
    round: Stream
    run: Stream
    overlap: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < math.inf:
            raise ConfigError(f"overlap is {self.overlap}: give a finite number, 0 or more.")
        if self.number < 0:
            raise ValueError(f"number is {self.number}: rounds count from 0.")
        if len(np.unique(self.clients)) != len(self.clients):
            raise ValueError("clients: one stands there twice.")


def deal_masks(
    kind: Masks, layers: Sequence[Neurons], counts: IntArray, dealing: Dealing
) -> list[list[IntArray]]:
    """Neurons of each client.

    Where a layer has blocks, each is dealt by itself, and a client holds equally many neurons of
    every block. Masks ``ordered``, ``rolling``, ``random`` and ``static`` do not depend on who else
    takes part.

    Args:
        kind: see the module's head. Smaller ``static`` masks of a client lie in its larger ones.
        layers: what is dealt.
        counts: [senders, layers], neurons of each client, multiples of the layer's blocks and from
            ``blocks`` to ``width``. For ``partition`` any sizes >= 0 with a positive sum over the
            clients: masks are in their proportion.
        dealing: the round, its clients, and randomness.

    Returns:
        Per client, per layer, the sorted neuron numbers. A layer (or a block) with fewer neurons
        than there are clients leaves some clients of a ``partition`` without a neuron of it.

    Raises:
        ValueError: the kind is unknown, or counts have another shape or range.
    """
    if kind not in get_args(Masks):
        raise ValueError(f"masks is {kind!r}: choose one of {', '.join(get_args(Masks))}.")
    counts = np.asarray(counts, dtype=np.int64)
    _check_counts(kind, layers, counts, len(dealing.clients))
    chosen: list[list[IntArray]] = [[] for _ in dealing.clients]
    for layer, wanted in zip(layers, counts.T, strict=True):
        starts, lengths = _arcs(kind, layer, wanted, dealing)
        circles = _circles(kind, layer, dealing)
        for mine, start, length, circle in zip(chosen, starts, lengths, circles, strict=False):
            held = np.zeros(layer.width, dtype=bool)  # faster than a sort
            held[circle.take(np.arange(start, start + length), axis=1, mode="wrap")] = True
            mine.append(np.flatnonzero(held).astype(np.int64, copy=False))
    return chosen


def coverage(chosen: Sequence[Sequence[IntArray]], layers: Sequence[Neurons]) -> list[IntArray]:
    """How many clients hold each neuron: per layer [width].

    Args:
        chosen: per client, per layer, neuron numbers, as from ``deal_masks``.
        layers: of which they are.
    """
    held = []
    for place, layer in enumerate(layers):
        numbers = np.concatenate([np.empty(0, np.int64), *(mine[place] for mine in chosen)])
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
    """Refuse masks of which fewer than ``min_clients`` hold a neuron.

    Args:
        chosen: per client, per layer, neuron numbers, as from ``deal_masks``.
        layers: of which they are.
        min_clients: min_coverage, the Gamma* that RA-Fed's rate rests on.
        clients: how many take part, for the message.
        number: of the round, from 1, for the message.
        cell: whose clients these are, for the message; None: there are no cells.

    Raises:
        ConfigError: naming the layer that is covered least, and those of its neurons that are.
    """
    held = coverage(chosen, layers)
    lowest = [int(times.min()) for times in held]
    if not held or min(lowest) >= min_clients:
        return
    worst = int(np.argmin(lowest))
    by = f"only {lowest[worst]}" if lowest[worst] else "none"
    poor = np.flatnonzero(held[worst] == lowest[worst]).astype(np.int64, copy=False)
    one = len(poor) == 1
    where = "" if cell is None else f"cell {cell} in "
    raise ConfigError(
        f"neuron{'' if one else 's'} {_ranges(poor)} of layer {layers[worst].name!r} "
        f"{'is' if one else 'are'} held by {by} of the {clients} "
        f"client{'' if clients == 1 else 's'} of {where}round {number}, and min_coverage is "
        f"{min_clients}. Give clients larger shares, or take more clients a round; of all masks, "
        '"covered" ones cover most evenly.'
    )


def _check_counts(kind: Masks, layers: Sequence[Neurons], counts: IntArray, senders: int) -> None:
    if counts.shape != (senders, len(layers)):
        raise ValueError(
            f"counts are {list(counts.shape)}: there are {senders} clients and {len(layers)} "
            "layers."
        )
    for layer, wanted in zip(layers, counts.T, strict=True):
        if kind == "partition":
            if (wanted < 0).any() or (senders and not wanted.any()):
                raise ValueError(f"counts of layer {layer.name!r}: give sizes >= 0, not all 0.")
            continue
        wrong = (wanted < layer.blocks) | (wanted > layer.width) | (wanted % layer.blocks > 0)
        if wrong.any():
            raise ValueError(
                f"counts[{np.argmax(wrong)}] of layer {layer.name!r} is {wanted[wrong][0]}: give "
                f"a multiple of {layer.blocks} from {layer.blocks} to {layer.width}."
            )


def _arcs(
    kind: Masks, layer: Neurons, wanted: IntArray, dealing: Dealing
) -> tuple[IntArray, IntArray]:
    """Starts and lengths [senders] of the clients' arcs, the same on each block's circle."""
    size = layer.width // layer.blocks
    lengths = wanted // layer.blocks
    if kind == "rolling":
        return np.full_like(lengths, dealing.number % size), lengths
    if kind == "covered":
        return np.cumsum(lengths) - lengths, lengths
    if kind == "partition" and len(wanted):
        shares = np.array(share_out(wanted.tolist(), size), dtype=np.int64)
        wider = shares + np.rint(
            dealing.overlap * shares
        )  # in floats: an overlap may be astronomical
        return np.cumsum(shares) - shares, np.minimum(wider, size).astype(np.int64)
    return np.zeros_like(lengths), lengths


def _circles(kind: Masks, layer: Neurons, dealing: Dealing) -> Iterator[IntArray]:
    """Neuron numbers [blocks, width/blocks] in the order of each client's circles."""
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

    A lone block draws from ``stream`` itself.
    """
    size = layer.width // layer.blocks
    streams = [stream]
    if layer.blocks > 1:
        streams = [stream.child(*names, block) for block in range(layer.blocks)]
    orders = [one.generator().permutation(size) + block * size for block, one in enumerate(streams)]
    return np.stack(orders).astype(np.int64, copy=False)


def _ranges(numbers: IntArray) -> str:
    """Sorted numbers in words: "150 to 199 and 203"; of many ranges the first ones."""
    ends = [0, *(np.flatnonzero(np.diff(numbers) > 1) + 1).tolist(), len(numbers)]
    runs = [(int(numbers[a]), int(numbers[b - 1])) for a, b in pairwise(ends)]
    words = [f"{a}" if a == b else f"{a} to {b}" for a, b in runs[:RANGES_SHOWN]]
    hidden = sum(b - a + 1 for a, b in runs[RANGES_SHOWN:])
    if hidden:
        words.append(f"{hidden} more")
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
