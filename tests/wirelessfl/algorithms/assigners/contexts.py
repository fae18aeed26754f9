"""Contexts of a small model, with seconds in proportion to the parameters of submodels."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product

import numpy as np
import torch

from channels import Stream
from wirelessfl.air.plan import WholeModel
from wirelessfl.engine.rounds.contexts import SenderContext
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import ParamSpec, find_neurons, make_partition

WIDTHS = (6, 4, 3)


@dataclass(frozen=True)
class Proportional:
    """Each parameter takes a client [senders] or cell [cells] so many seconds.

    Clients of a node that are ``coupled`` send one after the other.
    """

    seconds: np.ndarray
    node: np.ndarray
    coupled: bool = False
    title: str = "round 3"
    remedies: str = "cpu_hz"

    def seconds_of(self, lengths):
        found = lengths * self.seconds
        same = self.node[:, None] == self.node
        return found @ same if self.coupled else found

    def client_seconds(self, lengths):
        return np.outer(self.seconds, lengths)

    def fastest_sizes(self, partition, cap):
        """By brute force, as all solvers of the problem."""
        cells = len(self.seconds)
        limit = int(cap * partition.width / cells + 1e-9)
        sizes = [p for p in product(range(1, limit + 1), repeat=cells) if sum(p) == partition.width]
        return list(min(sizes, key=lambda p: (self.seconds * partition.lengths(p)).max()))


@cache
def model(widths):
    """A chain of linear layers: 5 inputs, hidden layers of these widths, 2 outputs."""
    module = FCNN((5,), 2, hidden=widths)
    spec = ParamSpec.of(module)
    neurons = cache(lambda: find_neurons(module, spec, torch.zeros(2, 5)))
    return WholeModel(spec, lambda scheme: make_partition(module, spec, scheme), neurons)


def context(node, seconds=None, *, senders=None, coupled=False, widths=WIDTHS, **changes):
    """A round of clients that report to ``node`` [senders]."""
    node = np.asarray(node)
    senders = np.arange(len(node)) if senders is None else np.asarray(senders)
    seconds = np.ones(len(node)) if seconds is None else np.asarray(seconds)
    number = changes.get("number", 2)
    given = {
        "model": model(widths),
        "nodes": int(node.max()) + 1,
        "clients": int(senders.max()) + 1,
        "run_stream": Stream(5),
        "number": number,
        "stream": Stream(5).child("round", number),
        "senders": senders,
        "node": node,
        "durations": Proportional(seconds, node, coupled),
    }
    return SenderContext(**(given | changes))


def parameters(counts, widths=WIDTHS, inputs=5, outputs=2):
    """Parameters of a chain of linear layers that keeps ``counts`` neurons."""
    sizes = [inputs, *counts, outputs]
    return sum(a * b + b for a, b in pairwise(sizes))
