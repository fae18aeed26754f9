"""Least-norm points of polyhedra, in batches: min ||x||^2 subject to G x >= b.

The dual is a quadratic program over the multipliers only, min_{y >= 0} y' G G' y / 2 - b' y, with
x = G' y. Mehrotra's predictor-corrector method solves it with a small, fixed number of steps for
the whole batch. Any y >= 0 proves ||x||^2 >= (b' y)^2 / ||G' y||^2 for every feasible x, so the
bound is valid even if the method has not converged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

_STEP = 0.99  # fraction of the way to the nearest bound
_CLOSED = 1e-11  # relative duality gap at which a problem counts as solved
_LARGEST = 1e12  # multipliers above this mean an infeasible problem


class LeastNorm(NamedTuple):
    """Solutions of a batch of least-norm problems.

    Args:
        point: x [..., n], nearly feasible; meaningless if the problem is infeasible.
        bound: proven lower bound [...] on ||x||^2; unlimited if the problem is infeasible.
    """

    point: torch.Tensor
    bound: torch.Tensor


def least_norm(
    rows: torch.Tensor, offset: torch.Tensor, *, steps: int = 12, soft: float = 0.0
) -> LeastNorm:
    """Solve min ||x||^2 subject to G x >= b for a batch.

    Args:
        rows: G [..., constraints, n] float64; a row of zeros with b < 0 constrains nothing.
        offset: b [..., constraints].
        steps: interior-point steps; 8 steps give about three digits, 12 about eight.
        soft: if > 0, every constraint (scaled to rows of norm 1) may be violated by t at a cost of
            (t / soft)^2. An infeasible problem then ends with a large bound, at most of order
            1 / soft^2, instead of an undefined result; feasible ones change by about soft^2.
    """
    constraints, n = rows.shape[-2:]
    # With rows of norm 1 the number of steps does not depend on the constraints' scales.
    length = torch.linalg.vector_norm(rows, dim=-1)
    length = torch.where(length > 0, length, torch.ones_like(length))
    rows, offset = rows / length.unsqueeze(-1), offset / length
    if soft:
        slope = torch.where((rows != 0).any(-1, keepdim=True), soft, 0.0).to(rows)
        rows, n = torch.cat([rows, slope], -1), n + 1
    columns = rows.mT
    slim = constraints <= n
    gram = rows @ columns if slim else None
    largest = offset.amax(-1, keepdim=True).clamp_min(1e-3)
    y = largest.expand_as(offset).clone()
    point = _times(columns, y)
    residual = _times(rows, point) - offset  # value that the slack must reach
    slack = residual.clamp_min(0) + largest
    for _ in range(steps):
        mean = (y * slack).mean(-1, keepdim=True)
        ratio = slack / y
        solve = _solver(gram, rows, columns, ratio)
        error = residual - slack
        change = solve(-error - slack)
        slack_change = -slack - ratio * change
        max_step = _longest(y, change, slack, slack_change)
        after = ((y + max_step * change) * (slack + max_step * slack_change)).mean(-1, keepdim=True)
        aim = mean * (after / mean).clamp(0, 1) ** 3
        target = (aim - change * slack_change) / y
        change = solve(-error - slack + target)
        slack_change = target - slack - ratio * change
        max_step = _STEP * _longest(y, change, slack, slack_change)
        # Converged problems stay fixed: further steps would add rounding errors and end in NaN.
        done = ~(torch.isfinite(change) & torch.isfinite(slack_change)).all(-1, keepdim=True)
        done |= mean * constraints <= _CLOSED * (offset * y).sum(-1, keepdim=True).abs()
        y = torch.where(done, y, (y + max_step * change).clamp(1e-300, _LARGEST))
        slack = torch.where(done, slack, (slack + max_step * slack_change).clamp_min(1e-300))
        point = _times(columns, y)
        residual = _times(rows, point) - offset
    gain = (offset * y).sum(-1).clamp_min(0)
    if soft:
        point = point[..., :-1]  # the bound from y holds for the original problem
    bound = torch.nan_to_num(gain.square() / point.square().sum(-1).clamp_min(1e-300))
    return LeastNorm(point, bound)


def _times(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _longest(
    y: torch.Tensor, change: torch.Tensor, slack: torch.Tensor, slack_change: torch.Tensor
) -> torch.Tensor:
    """Longest step in [0, 1] that keeps ``y`` and ``slack`` nonnegative, [..., 1]."""
    shrink = torch.maximum(-change / y, -slack_change / slack).amax(-1, keepdim=True)
    return 1 / shrink.clamp_min(1)


def _solver(
    gram: torch.Tensor | None, rows: torch.Tensor, columns: torch.Tensor, ratio: torch.Tensor
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a solver of (G G' + diag(ratio)) v = r.

    It factorises this matrix if ``gram`` is given, else the smaller I + G' diag(1/ratio) G.
    """
    if gram is not None:
        factor, _ = torch.linalg.cholesky_ex(gram + torch.diag_embed(ratio))
        return lambda r: torch.cholesky_solve(r.unsqueeze(-1), factor).squeeze(-1)
    inner = columns @ (rows / ratio.unsqueeze(-1))
    inner.diagonal(dim1=-2, dim2=-1).add_(1)
    factor, _ = torch.linalg.cholesky_ex(inner)

    def solve(r: torch.Tensor) -> torch.Tensor:
        scaled = r / ratio
        back = torch.cholesky_solve(_times(columns, scaled).unsqueeze(-1), factor).squeeze(-1)
        return scaled - _times(rows, back) / ratio

    return solve
