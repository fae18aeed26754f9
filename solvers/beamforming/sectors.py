"""Nodes of branch and bound on the phases of received signals."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

TURN = 2 * math.pi


class Nodes(NamedTuple):
    """Nodes of the branch-and-bound tree.

    Args:
        bound: [nodes], lower bounds on the objective.
        low, width: [nodes, clients], start and width of the phase intervals, in radians.
    """

    bound: Tensor
    low: Tensor
    width: Tensor


def split(nodes: Nodes, received: Tensor, miss: Tensor) -> Nodes:
    """Split the phase interval of each node's most violated client; a full circle into three.

    Args:
        nodes: nodes to split.
        received: [nodes, clients] complex, received signals at the relaxations' solutions; an
            interval is cut at the phase of its client's signal unless this is near an end.
        miss: [nodes, clients], violation of each client's constraint.
    """
    bound, low, width = nodes
    weakest = torch.where(width > 1e-6, miss, -torch.inf).argmax(-1, keepdim=True)
    start, span = low.gather(1, weakest), width.gather(1, weakest)
    phase = torch.remainder(received.gather(1, weakest).angle() - start, TURN)
    full = span > math.pi
    inside = (phase > 0.1 * span) & (phase < 0.9 * span)
    cut = torch.where(inside, phase, span / 2)
    pieces = torch.where(full, 3, 2)
    counts = pieces.squeeze(1)
    node = torch.arange(len(low), device=low.device).repeat_interleave(counts)
    number = torch.arange(len(node), device=low.device) - (counts.cumsum(0) - counts)[node]
    full, phase, cut, span, start = (x[node, 0] for x in (full, phase, cut, span, start))
    third = TURN / 3
    begin = torch.where(full, phase + third * number, cut * number)
    size = torch.where(full, third, torch.where(number == 0, cut, span - cut))
    low, width = low[node].clone(), width[node].clone()
    low.scatter_(1, weakest[node], (start + begin)[:, None])
    width.scatter_(1, weakest[node], size[:, None])
    return Nodes(bound[node], low, width)
