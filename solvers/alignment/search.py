"""Solves problems in normal form: exactly in one dimension, else from many starts with a bound.

Directions are drawn from the relaxation's covariance, and isotropically. The noise is first raised
to a level of the order of the signals, different for each start, and then lowered in stages to
its true value; each stage starts from the last one's points. At high SNR the error is close to
not differentiable, and a descent at the true noise would stop far from local minima.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from solvers.alignment.branch_and_bound import branch_and_bound
from solvers.alignment.descent import descend, objectives, polish, scaled
from solvers.alignment.gains import best_scale, dual_bound
from solvers.alignment.problem import Problems
from solvers.alignment.relaxation import Relaxation, relax
from solvers.beamforming import Default, optimize_beamformer

_STARTS = 32
_LEVELS = (0.05, 2.0)  # range over the starts, of the error at the first stage
_STAGES, _STEPS = 8, 3
_TOP, _POLISH, _LAST_POLISH = 4, 3, 6
# Of clients that channel inversion regards; gains are relative to the strongest client's:
_LEAST_WEIGHT = 1e-9
_LEAST_GAIN = 1e-100
_CHUNK_NUMBERS = {"cpu": 1 << 19, "cuda": 1 << 26}  # elements of the largest array of a chunk


class Settings(NamedTuple):
    """Settings of the search.

    Args:
        starts: number of starts; None for 32.
        seed: seed of the starts.
        limit_seconds: time limit of branch and bound per problem; None to skip it.
        proven_gap: relative gap at which branch and bound ends.
    """

    starts: int | None
    seed: int
    limit_seconds: float | None
    proven_gap: float


class Found(NamedTuple):
    """Points [problems, dimensions], lower bounds [problems] and a message."""

    point: Tensor
    bound: Tensor
    message: str = ""


def solve(problem: Problems, settings: Settings) -> Found:
    """Find points and bounds for a batch, which may be empty."""
    _, clients, dimensions = problem.g.shape
    if not len(problem.g):
        return Found(problem.g[:, 0], problem.kappa)
    if dimensions == 1:
        return _one_dimension(problem)
    starts = settings.starts or _STARTS
    size = _CHUNK_NUMBERS.get(problem.g.device.type, 1 << 19)
    size = max(1, size // (starts * clients * 2 * dimensions))
    draw = _draw(starts, dimensions, settings.seed, problem.g)
    parts = [
        _search(problem.rows(slice(first, first + size)), draw, settings.seed)
        for first in range(0, len(problem.g), size)
    ]
    point, bound, weights = (torch.cat(each) for each in zip(*parts, strict=True))
    if settings.limit_seconds is None:
        return Found(point, bound)
    closed = branch_and_bound(
        problem, point, bound, weights, settings.limit_seconds, settings.proven_gap
    )
    return Found(*closed)


def _one_dimension(problem: Problems) -> Found:
    g = problem.g[..., 0].abs()
    exact = best_scale(problem.q, g, problem.kappa, problem.present)
    square = (exact.multipliers * g).sum(-1).square()
    bound = dual_bound(problem.q, exact.multipliers, square, problem.kappa, problem.present)
    return Found(exact.alpha.unsqueeze(-1).to(problem.g.dtype), bound)


def _draw(starts: int, dimensions: int, seed: int, like: Tensor) -> Tensor:
    """Complex normal directions [starts, dimensions], the same for every problem."""
    generator = torch.Generator("cpu").manual_seed(seed)
    draw = torch.randn(
        starts, dimensions, dtype=torch.complex128, device="cpu", generator=generator
    )
    return draw.to(like.device)


def _search(problem: Problems, draw: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    relaxed = relax(problem)
    a = _top(problem, scaled(problem, _anneal(problem, relaxed, draw)), _TOP)
    inverting = scaled(problem, _inverting(problem, seed).unsqueeze(1))
    a = polish(problem, torch.cat([a, inverting], 1), _POLISH)
    a = polish(problem, _top(problem, a, 1), _LAST_POLISH)
    return a.squeeze(1), relaxed.bound, relaxed.weights


def _inverting(problem: Problems, seed: int) -> Tensor:
    """Directions [problems, dimensions] in which channel inversion has the least error."""
    length = torch.linalg.vector_norm(problem.g, dim=-1)
    audible = (length > 0) & (length >= _LEAST_GAIN * length.amax(-1, keepdim=True))
    heard = audible & (problem.q >= _LEAST_WEIGHT)
    scales = torch.where(heard, problem.q, 0.0)
    # Without such a client any direction will do.
    scales = torch.where(heard.any(-1, keepdim=True), scales, audible.to(scales))
    scales = torch.where(audible.any(-1, keepdim=True), scales, 1.0)
    found = optimize_beamformer(problem.g, backend=Default(seed=seed), scales=scales)
    assert found.value is not None
    return found.value


def _top(problem: Problems, a: Tensor, count: int) -> Tensor:
    value = objectives(problem, a).nan_to_num(torch.inf)
    best = value.topk(min(count, a.shape[1]), dim=-1, largest=False).indices
    return a.gather(1, best.unsqueeze(-1).expand(-1, -1, a.shape[-1]))


def _anneal(problem: Problems, relaxed: Relaxation, draw: Tensor) -> Tensor:
    """Points [problems, starts, dimensions] after all stages."""
    problems, _, dimensions = problem.g.shape
    starts = len(draw)
    factor, failed = torch.linalg.cholesky_ex(relaxed.covariance)
    usable = (failed == 0)[:, None, None] & (torch.arange(starts, device=draw.device) % 2 == 0)[
        :, None
    ]
    a = torch.where(usable, draw @ factor.mT, draw)
    low, high = _LEVELS
    level = torch.logspace(0, 1, starts, base=high / low, dtype=torch.float64, device=draw.device)
    floor = relaxed.bound.clamp_min(1e-300)
    raised = (low * level / floor.unsqueeze(-1)).clamp_min(1)  # of the noise, at the first stage

    def each(part: Tensor) -> Tensor:
        """One problem per start."""
        return part.unsqueeze(1).expand(-1, starts, *part.shape[1:]).flatten(0, 1)

    q, kappa, present = (each(part) for part in (problem.q, problem.kappa, problem.present))
    a = a.reshape(-1, 1, dimensions)
    for stage in range(_STAGES + 1):
        noise = raised ** (1 - stage / _STAGES)
        g = (problem.g.unsqueeze(1) / noise.sqrt()[..., None, None]).flatten(0, 1)
        single = Problems(g, q, kappa, present)
        a = descend(single, scaled(single, a), _STEPS)
    return a.reshape(problems, starts, dimensions)
