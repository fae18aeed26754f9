"""Certified optima of small problems: branch and bound on the phases of the received signals.

The objective is the minimum over u <= |z| of ||a||^2 + sum_i (q_i - u_i)_+^2, with z_i = g_i^H a.
If the phase of z_i is confined to an interval of width 2 Delta around phi_i, then
u_i cos Delta <= Re(e^{-j phi_i} z_i). For weights w of the relaxation, ||a||^2 is at least
a^H S a + sum_i w_i u_i^2 with S = I - sum_i w_i g_i g_i^H, and the minimum over u_i leaves

    a^H S a + sum_i q_i^2 w_i / (1 + w_i)
        + sum over confined i of (1 + w_i) (q_i / (1 + w_i) - Re(e^{-j phi_i} z_i) / cos Delta)_+^2,

a least-norm problem whose multipliers prove the bound. With the relaxation's w it is tight at the
root of the tree, and with w = 0 near the leaves; both are solved.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import torch
from torch import Tensor

from solvers.alignment.alignment_problem import AlignmentProblems
from solvers.alignment.descent import objectives, polish, scaled
from solvers.beamforming.least_norm import least_norm
from solvers.beamforming.sectors import TURN, Nodes, split

_NODES = 512  # relaxations solved together
_W_FRACTION = 0.8  # of the relaxation's w; with 1 the quadratic form would be singular


class Closed(NamedTuple):
    """Points [problems, dimensions], lower bounds [problems] and a message."""

    point: Tensor
    bound: Tensor
    message: str = ""


def branch_and_bound(
    problem: AlignmentProblems,
    point: Tensor,
    bound: Tensor,
    weights: Tensor,
    limit_seconds: float,
    gap: float,
) -> Closed:
    """Improve points and bounds to a relative ``gap``, one problem after the other.

    Args:
        problem: problems without correlation, kappa = infinity.
        point: initial points [problems, dimensions].
        bound: lower bounds [problems] of the relaxation.
        weights: w [problems, clients] of the relaxation.
        limit_seconds: time limit per problem, after which it stops with the best point and bound.
        gap: relative gap at which a problem is closed.
    """
    device, point, bound, unclosed = point.device, point.clone(), bound.clone(), 0
    local = AlignmentProblems(*(part.cpu() for part in problem))
    for number in range(len(point)):
        one = local.rows(slice(number, number + 1))
        tree = _Tree(one, weights[number].cpu(), 0.99 * gap)
        best, proven = tree.search(point[number].cpu(), float(bound[number]), limit_seconds)
        point[number], bound[number] = best.to(device), proven
        unclosed += proven < float(objectives(one, best[None, None])) * (1 - gap)
    text = f"{unclosed} of {len(point)} problems not closed in {limit_seconds:g} s"
    return Closed(point, bound, text if unclosed else "")


class _Tree:
    """The tree of one problem.

    Args:
        problem: the problem, a batch of one, on the CPU.
        w: [clients], weights of the relaxation.
        closed: relative gap at which nodes are closed.
    """

    def __init__(self, problem: AlignmentProblems, w: Tensor, closed: float) -> None:
        self.problem, self.closed = problem, closed
        g, q = problem.g[0], problem.q[0]
        # A common phase of a has no effect: the client with the largest share gets phase 0.
        self.root = int((q * torch.linalg.vector_norm(g, dim=-1)).argmax())
        self.relaxations = [
            _Relaxation.of(g, q, self.root, _W_FRACTION * w),
            _Relaxation.of(g, q, self.root, 0 * w),
        ]

    def search(self, best: Tensor, bound: float, limit_seconds: float) -> tuple[Tensor, float]:
        """The best point [dimensions] found, and the bound proven."""
        deadline = time.monotonic() + limit_seconds
        least = float(objectives(self.problem, best[None, None]))
        clients = self.problem.q.shape[-1]
        width = torch.full((1, clients), TURN, dtype=torch.float64, device=best.device)
        width[:, self.root] = 0
        nodes = Nodes(torch.full_like(width[:, 0], bound), torch.zeros_like(width), width)
        while True:
            nodes = Nodes(*(part[nodes.bound < least * (1 - self.closed)] for part in nodes))
            if not len(nodes.bound):
                return best, max(bound, least * (1 - self.closed))
            order = nodes.bound.argsort()
            bound = max(bound, float(nodes.bound[order[0]]))
            if time.monotonic() > deadline:
                return best, bound
            batch = Nodes(*(part[order[:_NODES]] for part in nodes))
            rest = Nodes(*(part[order[_NODES:]] for part in nodes))
            proven = batch.bound
            for relaxation in self.relaxations:
                lower, points = relaxation.solve(batch.low, batch.width)
                proven = torch.maximum(proven, lower)
                candidate, reached = self._best(points)
                if reached < least:
                    best, least = candidate, reached
            received = points @ self.problem.g[0].mH
            miss = relaxation.miss(received, batch.low, batch.width)
            children = split(batch._replace(bound=proven), received, miss)
            nodes = Nodes(*(torch.cat(pair) for pair in zip(children, rest, strict=True)))

    def _best(self, points: Tensor) -> tuple[Tensor, float]:
        """The best of points [nodes, dimensions], with its best length, and its objective."""
        a = scaled(self.problem, points.unsqueeze(0))
        value = objectives(self.problem, a).nan_to_num(torch.inf)
        chosen = a[:, value[0].argmin()].unsqueeze(1)
        if float(value.min()) < math.inf:
            chosen = polish(self.problem, chosen, 1)
        return chosen[0, 0], float(objectives(self.problem, chosen))


class _Relaxation(NamedTuple):
    """The relaxed objective for weights w, in coordinates in which a^H S a is a squared norm.

    The signal of the root client, whose phase is 0, is real in these coordinates.

    Args:
        back: [dimensions, dimensions], a = back @ coordinates.
        g: [clients, dimensions], channels in these coordinates; the root's is along the first axis.
        q: [clients].
        w: [clients].
    """

    back: Tensor
    g: Tensor
    q: Tensor
    w: Tensor

    @classmethod
    def of(cls, g: Tensor, q: Tensor, root: int, w: Tensor) -> _Relaxation:
        eye = torch.eye(g.shape[1], dtype=g.dtype, device=g.device)
        power, axes = torch.linalg.eigh(eye - (g * w.unsqueeze(-1)).T @ g.conj())
        if not power[0] > 0:  # these weights give no bound
            w, power, axes = 0 * w, torch.ones_like(power), eye
        back = axes / power.sqrt()
        first = back.mH @ g[root]
        basis = torch.linalg.qr(first[:, None], mode="complete").Q
        turn = basis[:, 0].conj() @ first
        basis[:, 0] *= turn / turn.abs()
        back = back @ basis
        return cls(back, g @ back.conj(), q, w)

    def solve(self, low: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
        """Lower bounds [nodes] on the objective, and points [nodes, dimensions]."""
        minimum = least_norm(*self.relaxed(low, width), steps=10)
        base = (self.q.square() * self.w / (1 + self.w)).sum()
        dimensions = self.g.shape[-1]
        x = minimum.point[:, : 2 * dimensions - 1]
        imaginary = torch.nn.functional.pad(x[:, dimensions:], (1, 0))
        points = torch.complex(x[:, :dimensions], imaginary) @ self.back.T
        return minimum.bound.nan_to_num(0.0) + base, points

    def relaxed(self, low: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
        """Constraints G x >= b, with x the coordinates of a and a slack of norm 1 per client."""
        used = (width <= math.pi).unsqueeze(-1)
        turned = torch.polar(torch.ones_like(low), low + width / 2).unsqueeze(-1) * self.g
        rows = torch.cat([turned.real, turned.imag[..., 1:]], -1)
        cosine = (width / 2).cos().clamp_min(0)
        slack = torch.diag_embed(cosine * (1 + self.w).rsqrt())
        rows = torch.where(used, torch.cat([rows, slack], -1), 0.0)
        offset = torch.where(used.squeeze(-1), cosine * self.q / (1 + self.w), -1.0)
        return rows, offset

    def miss(self, received: Tensor, low: Tensor, width: Tensor) -> Tensor:
        """By how much each client's relaxed term is below its true value, [nodes, clients]."""
        size = received.abs()
        true = (self.q - size).clamp_min(0).square() + self.w * size.square()
        along = (received * torch.polar(torch.ones_like(low), -(low + width / 2))).real
        reach = along / (width / 2).cos().clamp_min(1e-300)
        confined = (1 + self.w) * (self.q / (1 + self.w) - reach).clamp_min(0).square()
        relaxed = self.q.square() * self.w / (1 + self.w)
        return true - relaxed - torch.where(width <= math.pi, confined, 0.0)
