"""Solves problems in normal form: exactly in one dimension, else from many starts with a bound.

Directions are drawn from the relaxation's covariance, and isotropically. The noise is first raised
to a level of the order of the signals, different for each start, and then lowered in stages to
its true value; each stage starts from the last one's points. At high SNR the error is close to
not differentiable, and a descent at the true noise would stop far from local minima.

Without a bound, the search is shorter: all directions are isotropic, because the relaxation is not
solved, and starts and stages are fewer. For 15 clients and 10 antennas in Rayleigh fading, the
error is then at most 0.01 % above that of the full search on average, at SNRs from -20 to 30 dB.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from solvers.alignment.alignment_problem import AlignmentProblems
from solvers.alignment.branch_and_bound import branch_and_bound
from solvers.alignment.descent import descend, objectives, polish, scaled, softened
from solvers.alignment.gains import best_scale, dual_bound
from solvers.alignment.relaxation import relax
from solvers.beamforming import Default, optimize_beamformer

_STARTS, _SHORT_STARTS = 32, 16
_LEVELS = (0.05, 2.0)  # range over the starts, of the error at the first stage
_STAGES, _STEPS = 8, 3
_SHORT_STAGES, _SHORT_STEPS = 4, 2
_SHORT_FIRST, _SHORT_LAST = 3, 20  # Newton steps from channel inversion; from the best points
_TOP, _POLISH, _LAST_POLISH = 4, 3, 6
# Of clients that channel inversion regards; gains are relative to the strongest client's:
_LEAST_WEIGHT = 1e-9
_LEAST_GAIN = 1e-100
_CHUNK_NUMBERS = {"cpu": 1 << 19, "cuda": 1 << 26}  # elements of the largest array of a chunk


class SearchSettings(NamedTuple):
    """Settings of the search.

    Args:
        starts: number of starts; None for 32, or 16 without a bound.
        seed: seed of the starts.
        limit_seconds: time limit of branch and bound per problem; None to skip it.
        proven_gap: relative gap at which branch and bound ends.
        bounded: whether a bound is needed for several antennas.
    """

    starts: int | None
    seed: int
    limit_seconds: float | None
    proven_gap: float
    bounded: bool = True


class FoundPoints(NamedTuple):
    """Points [problems, dimensions], lower bounds [problems] (NaN for none) and a message."""

    point: Tensor
    bound: Tensor
    message: str = ""


def solve(problem: AlignmentProblems, settings: SearchSettings) -> FoundPoints:
    """Find points and bounds for a batch, which may be empty."""
    _, clients, dimensions = problem.g.shape
    if not len(problem.g):
        return FoundPoints(problem.g[:, 0], problem.kappa)
    if dimensions == 1:
        return _one_dimension(problem)
    starts = settings.starts or (_STARTS if settings.bounded else _SHORT_STARTS)
    size = _CHUNK_NUMBERS.get(problem.g.device.type, 1 << 19)
    size = max(1, size // (starts * clients * 2 * dimensions))
    draw = _draw(starts, dimensions, settings.seed, problem.g)
    rows = (slice(first, first + size) for first in range(0, len(problem.g), size))
    if not settings.bounded:
        points = torch.cat(
            [_short_search(problem.rows(part), draw, settings.seed) for part in rows]
        )
        return FoundPoints(points, torch.full_like(problem.kappa, torch.nan))
    parts = [_search(problem.rows(part), draw, settings.seed) for part in rows]
    point, bound, weights = (torch.cat(blocks) for blocks in zip(*parts, strict=True))
    if settings.limit_seconds is None:
        return FoundPoints(point, bound)
    closed = branch_and_bound(
        problem, point, bound, weights, settings.limit_seconds, settings.proven_gap
    )
    return FoundPoints(*closed)


def _one_dimension(problem: AlignmentProblems) -> FoundPoints:
    g = problem.g[..., 0].abs()
    exact = best_scale(problem.q, g, problem.kappa, problem.present)
    square = (exact.multipliers * g).sum(-1).square()
    bound = dual_bound(problem.q, exact.multipliers, square, problem.kappa, problem.present)
    return FoundPoints(exact.alpha.unsqueeze(-1).to(problem.g.dtype), bound)


def _draw(starts: int, dimensions: int, seed: int, like: Tensor) -> Tensor:
    """Complex normal directions [starts, dimensions], the same for every problem."""
    generator = torch.Generator("cpu").manual_seed(seed)
    draw = torch.randn(
        starts, dimensions, dtype=torch.complex128, device="cpu", generator=generator
    )
    return draw.to(like.device)


def _search(problem: AlignmentProblems, draw: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    relaxed = relax(problem)
    annealed = _anneal(problem, relaxed.bound, _towards(relaxed.covariance, draw), _STAGES, _STEPS)
    a = _top(problem, scaled(problem, annealed), _TOP)
    inverting = scaled(problem, _inverting(problem, seed).unsqueeze(1))
    a = polish(problem, torch.cat([a, inverting], 1), _POLISH)
    a = polish(problem, _top(problem, a, 1), _LAST_POLISH)
    return a.squeeze(1), relaxed.bound, relaxed.weights


def _short_search(problem: AlignmentProblems, draw: Tensor, seed: int) -> Tensor:
    """Points [problems, dimensions]; the level of the error is that of channel inversion."""
    inverting = scaled(problem, _inverting(problem, seed).unsqueeze(1))
    inverting = descend(problem, inverting, _SHORT_FIRST)
    level = objectives(problem, inverting).squeeze(1)
    a = draw.expand(len(problem.g), -1, -1)
    a = _anneal(problem, level, a, _SHORT_STAGES, _SHORT_STEPS)
    a = _top(problem, torch.cat([a, inverting], 1), _TOP)
    a = scaled(problem, descend(problem, scaled(problem, a), _SHORT_LAST))
    a = _top(problem, a, 1)
    if softened(problem):  # the descent has minimised another error
        a = polish(problem, a, _LAST_POLISH)
    return a.squeeze(1)


def _inverting(problem: AlignmentProblems, seed: int) -> Tensor:
    """Directions [problems, dimensions] in which channel inversion has the least error."""
    length = torch.linalg.vector_norm(problem.g, dim=-1)
    audible = (length > 0) & (length >= _LEAST_GAIN * length.amax(-1, keepdim=True))
    heard = audible & (problem.q >= _LEAST_WEIGHT)
    scales = torch.where(heard, problem.q, 0.0)
    # Without such a client any direction will do.
    scales = torch.where(heard.any(-1, keepdim=True), scales, audible.to(scales))
    scales = torch.where(audible.any(-1, keepdim=True), scales, 1.0)
    solution = optimize_beamformer(problem.g, backend=Default(seed=seed), scales=scales)
    assert solution.value is not None
    return solution.value


def _top(problem: AlignmentProblems, a: Tensor, count: int) -> Tensor:
    value = objectives(problem, a).nan_to_num(torch.inf)
    best = value.topk(min(count, a.shape[1]), dim=-1, largest=False).indices
    return a.gather(1, best.unsqueeze(-1).expand(-1, -1, a.shape[-1]))


def _towards(covariance: Tensor, draw: Tensor) -> Tensor:
    """Directions [problems, starts, dimensions]: every second one drawn from the covariance."""
    factor, failed = torch.linalg.cholesky_ex(covariance)
    usable = (failed == 0)[:, None, None] & (torch.arange(len(draw), device=draw.device) % 2 == 0)[
        :, None
    ]
    return torch.where(usable, draw @ factor.mT, draw)


def _anneal(
    problem: AlignmentProblems, error: Tensor, a: Tensor, stages: int, steps: int
) -> Tensor:
    """Points [problems, starts, dimensions] after all stages."""
    problems, starts, dimensions = a.shape
    low, high = _LEVELS
    level = torch.logspace(0, 1, starts, base=high / low, dtype=torch.float64, device=a.device)
    floor = error.clamp_min(1e-300)
    raised = (low * level / floor.unsqueeze(-1)).clamp_min(1)  # of the noise, at the first stage

    def each(part: Tensor) -> Tensor:
        """One problem per start."""
        return part.unsqueeze(1).expand(-1, starts, *part.shape[1:]).flatten(0, 1)

    q, kappa, present = (each(part) for part in (problem.q, problem.kappa, problem.present))
    a = a.reshape(-1, 1, dimensions)
    for stage in range(stages + 1):
        noise = raised ** (1 - stage / stages)
        g = (problem.g.unsqueeze(1) / noise.sqrt()[..., None, None]).flatten(0, 1)
        single = AlignmentProblems(g, q, kappa, present)
        a = descend(single, scaled(single, a), steps)
    return a.reshape(problems, starts, dimensions)
