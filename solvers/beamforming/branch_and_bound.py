"""Exact receive beamforming of small problems: branch and bound on the phases of a^H h_i.

In the form  min ||m||^2  subject to  |h_i^H m| >= 1  the only nonconvexity is the phase of each
client's received signal. If a phase is confined to an interval of at most 180 degrees, the convex
hull of the feasible set is bounded by a chord and two rays (Lu and Liu, 2017), and the relaxation
is a least-norm problem. A second relaxation also covers clients whose phase is not yet confined:
for q of the semidefinite relaxation, ||m||^2 >= m^H (I - sum_i q_i h_i h_i^H) m + sum_i q_i. The
second relaxation is tight near the root of the tree, the first near the leaves. Multipliers prove
the bounds, and the proof holds even if they were computed with low accuracy.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from channels.validation import shown
from solvers.beamforming.anneal import Anneal, polish
from solvers.beamforming.beamformer_backend import (
    PROVEN_GAP,
    BeamformerBackend,
    Certificate,
    FoundBeamformers,
)
from solvers.beamforming.beamforming_problem import BeamformingProblems
from solvers.beamforming.directions import of_unit_norm, unit_norm
from solvers.beamforming.least_norm import least_norm
from solvers.beamforming.relaxation import relaxation_weights
from solvers.beamforming.sectors import TURN, Nodes, split
from solvers.settings import check_time_limit

_CLOSED = 0.99 * PROVEN_GAP  # gap at which nodes are closed, with a margin for rounding
_NODES = 512  # relaxations solved together
_Q_FRACTION = 0.97  # of the semidefinite q; with 1 the quadratic form would be singular
_OTHERS = 0.1  # branching weight of clients that the semidefinite relaxation ignores


@dataclass(frozen=True)
class BranchAndBound(BeamformerBackend, Certificate):
    """Branch and bound, as a backend or as a certificate for another backend's solution.

    >>> import numpy as np
    >>> import solvers
    >>> h = np.random.default_rng(1).standard_normal((4, 3, 2)).view(complex)[..., 0]
    >>> backend = solvers.beamforming.BranchAndBound(time_limit_seconds=10.0)
    >>> solvers.optimize_beamformer(h, backend=backend).status.name
    'OPTIMAL'

    Args:
        time_limit_seconds: time limit per problem, after which it stops with the best solution and
            bound; > 0, infinity for no limit.
        start: backend that computes the initial beamformers; a certificate uses the given ones.
    """

    name = "branch_and_bound"

    time_limit_seconds: float = 60.0
    start: BeamformerBackend = field(default_factory=Anneal)

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit_seconds)
        if not isinstance(self.start, BeamformerBackend):
            raise ValueError(
                f"start is {shown(self.start)}: give a backend, e.g. Anneal(starts=16)."
            )

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        """Find beamformers and bounds to a relative ``PROVEN_GAP``, within the time limit."""
        heuristic = self.start.solve(problem)
        return heuristic.then(self.certify(problem, heuristic))

    def certify(self, problem: BeamformingProblems, start: FoundBeamformers) -> FoundBeamformers:
        """As :meth:`solve`, starting from the beamformers of ``start``."""
        h, value = problem.h, of_unit_norm(start.value)
        bound, unclosed = torch.empty_like(value.real[:, 0]), 0
        for number, (channels, first) in enumerate(zip(h.cpu(), value.cpu(), strict=True)):
            exact = branch_and_bound(channels, first, self.time_limit_seconds)
            value[number] = polish(channels[None], exact.value[None, None])[0, 0]
            bound[number] = exact.bound
            unclosed += exact.bound > exact.objective * (1 + PROVEN_GAP)
        limit = f"{self.time_limit_seconds:g} s"
        message = f"{unclosed} of {len(h)} problems not closed in {limit}" if unclosed else ""
        return FoundBeamformers(value, bound, message)


class Exact(NamedTuple):
    """Result of branch and bound.

    Args:
        value: the best beamformer [antennas].
        objective: its min_i |a^H h_i|^2.
        bound: proven upper bound on the objective of any beamformer.
        nodes: number of nodes processed.
    """

    value: Tensor
    objective: float
    bound: float
    nodes: int


def branch_and_bound(h: Tensor, start: Tensor, limit_seconds: float) -> Exact:
    """Find the best beamformer of one problem, to a relative gap of ``PROVEN_GAP``.

    Args:
        h: [clients, antennas] complex128, no channel zero.
        start: initial beamformer [antennas], of norm 1; it may null a client.
        limit_seconds: time limit, after which it stops with the best solution and bound.
    """
    deadline = time.monotonic() + limit_seconds
    best = start
    score = float(_score(h, best[None])[0])
    min_square = 1 / score if score > 0 else math.inf  # ||m||^2 of the best beamformer so far
    clients, root = len(h), int(torch.linalg.vector_norm(h, dim=-1).argmin())
    q = relaxation_weights(h[None])[0]
    weight = q / q.max() + _OTHERS
    quadratic, plain = _Relaxation.of(h, root, _Q_FRACTION * q), _Relaxation.of(h, root, 0 * q)
    low = torch.zeros(1, clients, dtype=torch.float64, device=h.device)
    width = torch.full_like(low, TURN)
    width[:, root] = 0  # a common phase has no effect, so the root's phase is fixed
    bound = torch.zeros_like(low[:, 0])
    proven, nodes = 0.0, 0
    while len(bound):
        order = bound.argsort()
        proven = float(bound[order[0]])
        if time.monotonic() > deadline:
            break
        current, rest = order[:_NODES], order[_NODES:]
        nodes += len(current)
        batch = Nodes(bound[current], low[current], width[current])
        for relaxation in (quadratic, plain):
            proved, points = relaxation.solve(batch.low, batch.width)
            batch = batch._replace(bound=torch.maximum(batch.bound, proved))
            beamformers = relaxation.beamformers(points)
            scores = _score(h, beamformers).nan_to_num()
            if scores.max() > 1 / min_square:
                best, min_square = beamformers[scores.argmax()], 1 / float(scores.max())
        received = plain.received(points)
        children = split(batch, received, weight * (1 - received.abs().square()))
        others = Nodes(bound[rest], low[rest], width[rest])
        parts = (torch.cat(pair) for pair in zip(children, others, strict=True))
        bound, low, width = parts
        open_ = bound < min_square / (1 + _CLOSED)
        bound, low, width = bound[open_], low[open_], width[open_]
    else:
        proven = min_square / (1 + _CLOSED)
    return Exact(best, 1 / min_square, 1 / max(min(proven, min_square), 1e-300), nodes)


class _Relaxation(NamedTuple):
    """The relaxed objective m^H S m + sum q with S = I - sum q_i h_i h_i^H.

    In its coordinates m^H S m is a squared norm, and the received signal of the root client, whose
    phase is fixed, is real.

    Args:
        back: [antennas, antennas], m = back @ coordinates.
        g: [clients, antennas], channels in these coordinates; the root's is along the first axis.
        base: sum q.
    """

    back: Tensor
    g: Tensor
    base: float

    @classmethod
    def of(cls, h: Tensor, root: int, q: Tensor) -> _Relaxation:
        unit = torch.eye(h.shape[1], dtype=h.dtype, device=h.device)
        power, axes = torch.linalg.eigh(unit - (h * q[:, None]).T @ h.conj())
        if not power[0] > 0:  # these weights give no bound
            q, power, axes = 0 * q, torch.ones_like(power), unit
        back = axes / power.sqrt()
        first = back.mH @ h[root]
        basis = torch.linalg.qr(first[:, None], mode="complete").Q
        turn = basis[:, 0].conj() @ first
        basis[:, 0] *= turn / turn.abs()
        back = back @ basis
        return cls(back, h @ back.conj(), float(q.sum()))

    def solve(self, low: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
        """Lower bounds [nodes] on ||m||^2, and points [nodes, 2 antennas - 1]."""
        minimum = least_norm(*self.relaxed(low, width), steps=10, soft=1e-3)
        return minimum.bound + self.base, minimum.point

    def relaxed(self, low: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
        """Constraints G x >= b of the relaxations, with G [nodes, 3 clients, 2 antennas - 1]."""
        confined = width <= math.pi
        rays = confined & (width > 0)  # not for the root client: its signal is real already
        angles = torch.stack([low + width / 2, low + math.pi / 2, low + width - math.pi / 2], -2)
        used = torch.stack([confined, rays, rays], -2)
        turned = torch.polar(used.to(angles), angles).unsqueeze(-1) * self.g
        rows = torch.cat([turned.real, turned.imag[..., 1:]], -1)
        cosine = (width / 2).cos()
        offset = torch.stack([cosine, torch.zeros_like(low), torch.zeros_like(low)], -2)
        offset = torch.where(used, offset, -1.0)
        return rows.flatten(1, 2), offset.flatten(1, 2)

    def received(self, points: Tensor) -> Tensor:
        """Received signals h_i^H m [nodes, clients] at ``points``."""
        return self._complex(points) @ self.g.mH

    def beamformers(self, points: Tensor) -> Tensor:
        """Beamformers [nodes, antennas] of norm 1 at ``points``."""
        m = self._complex(points) @ self.back.T
        return unit_norm(m)

    def _complex(self, points: Tensor) -> Tensor:
        antennas = self.g.shape[-1]
        imaginary = torch.nn.functional.pad(points[:, antennas:], (1, 0))
        return torch.complex(points[:, :antennas], imaginary)


def _score(h: Tensor, a: Tensor) -> Tensor:
    """Objective min_i |a^H h_i|^2 [beamformers] of beamformers [beamformers, antennas]."""
    return (a.conj() @ h.T).abs().square().amin(-1)
