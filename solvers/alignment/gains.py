"""The weights that clients should arrive with, given the largest ones that their power allows.

In normal form a problem has weights q, channels g_i = A_i h_i / sigma and a sharing number kappa
in [0, inf], and its objective is

    min over w <= y of  ||w - q||^2 + (sum (w - q))^2 / kappa,  plus ||a||^2,  with y_i = |a^H g_i|.

kappa = inf is the error of uncorrelated updates, kappa = (1 - c) / c that of updates with
correlation c, and kappa = 0 forces sum w = sum q. A client that cannot reach q_i leaves a deficit
d_i = q_i - y_i; the others make up for a part of it: w_i = min(y_i, q_i + tau), where tau >= 0
solves sum_i max(d_i, -tau) = kappa tau. With the deficits in descending order that is the largest
of (sum of the first k deficits) / (kappa + K - k).

With one antenna y = alpha g. The multipliers lambda_i = max(d_i + tau, 0) of w <= y give the
slope alpha - sum_i g_i lambda_i, which is increasing, concave and piecewise linear in alpha.
Newton's method therefore ends at its root after finitely many steps, from any start. For
kappa = inf this is max_k sum_{i <= k} q_i g_i / (1 + sum_{i <= k} g_i^2) with g_i / q_i ascending
(Cao et al., IEEE TWC 2020, doi 10.1109/TWC.2020.3012287; Liu et al., arXiv:1909.00329).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_NEWTON_STEPS = 100


class Fill(NamedTuple):
    """The best weights for given limits.

    Args:
        tau: [...], the surplus of clients that reach their weight.
        multipliers: lambda [..., clients] >= 0 of the limits w <= y; minus half the gradient of
            the error in y.
        error: [...], ||w - q||^2 + (sum (w - q))^2 / kappa.
    """

    tau: Tensor
    multipliers: Tensor
    error: Tensor


def fill(q: Tensor, y: Tensor, kappa: Tensor, present: Tensor) -> Fill:
    """The best weights w <= y.

    Args:
        q: weights [..., clients].
        y: limits [..., clients] >= 0; 0 for absent clients.
        kappa: [...]; where it is 0, limits whose sum is below that of q give the weights w = y.
        present: clients [..., clients] that take part; the others have q = y = 0.
    """
    deficit = q - y
    if torch.isinf(kappa).all():
        multipliers = deficit.clamp_min(0)
        return Fill(torch.zeros_like(kappa), multipliers, multipliers.square().sum(-1))
    tau = _surplus(deficit, kappa, present)
    multipliers = torch.where(present, (deficit + tau.unsqueeze(-1)).clamp_min(0), 0.0)
    surplus = torch.where(present, torch.maximum(deficit, -tau.unsqueeze(-1)), 0.0)
    common = surplus.sum(-1).square()
    common = torch.where(common > 0, common / kappa, 0.0)
    free = (kappa > 0) & torch.isfinite(kappa)
    error = surplus.square().sum(-1) + torch.where(free, common, 0.0)
    return Fill(tau, multipliers, error)


def _surplus(deficit: Tensor, kappa: Tensor, present: Tensor) -> Tensor:
    """tau [...]; with kappa = 0 the one that lets at least one client exceed its weight."""
    ordered = torch.where(present, deficit, -torch.inf).sort(-1, descending=True).values
    count = present.sum(-1, keepdim=True)
    number = torch.arange(1, deficit.shape[-1] + 1, device=deficit.device)
    total = torch.where(ordered > -torch.inf, ordered, 0.0).cumsum(-1)
    rest = kappa.unsqueeze(-1) + count - number
    usable = (number <= count) & (rest > 0)
    ratios = torch.where(usable, total / torch.where(usable, rest, 1.0), 0.0)
    return ratios.amax(-1).clamp_min(0)


class ScaledGains(NamedTuple):
    """The exact solution of problems with one antenna.

    Args:
        alpha: [problems], the best receive gain >= 0.
        multipliers: lambda [problems, clients]; see :func:`dual_bound`.
    """

    alpha: Tensor
    multipliers: Tensor


def best_scale(q: Tensor, g: Tensor, kappa: Tensor, present: Tensor) -> ScaledGains:
    """The gain alpha that minimises the objective for limits y = alpha g.

    Args:
        q: weights [..., clients].
        g: gains [..., clients] >= 0; 0 for absent clients.
        kappa: [...]; where it is 0, sum g must be positive.
        present: clients [..., clients] that take part.
    """
    reach, total = g.sum(-1), q.sum(-1)
    least = torch.where(kappa == 0, total / torch.where(reach > 0, reach, 1.0), 0.0)
    alpha, count = least, present.sum(-1)
    for _ in range(_NEWTON_STEPS):
        filled = fill(q, alpha.unsqueeze(-1) * g, kappa, present)
        deficit = q - alpha.unsqueeze(-1) * g
        limited = (filled.multipliers > 0) & present
        # At least one client exceeds its weight if sum w = sum q; rounding errors may hide it.
        all_limited = (kappa == 0) & (limited.sum(-1) == count)
        smallest = torch.where(present, deficit, torch.inf).amin(-1, keepdim=True)
        limited &= ~(all_limited.unsqueeze(-1) & (deficit <= smallest))
        used = torch.where(limited, g, 0.0)
        share = 1 / (kappa + count - limited.sum(-1))
        asked = torch.where(limited, q, 0.0).sum(-1)
        top = (used * q).sum(-1) + used.sum(-1) * asked * share
        # The root of the linear piece, rather than a step, so that nothing cancels.
        root = top / (1 + used.square().sum(-1) + used.sum(-1).square() * share)
        # At high SNR rounding may move alpha to the end of its piece, where no client that is heard
        # is at its limit. That end is then the root.
        moving = (used > 0).any(-1)
        later = torch.where(moving, torch.maximum(root, least), alpha)
        done = (later - alpha).abs() <= 4e-16 * later
        alpha = later
        if done.all():
            break
    filled = fill(q, alpha.unsqueeze(-1) * g, kappa, present)
    deficit = q - alpha.unsqueeze(-1) * g
    # At the minimum for kappa = 0 all clients are at their limits and any larger tau is one too.
    level = (alpha - (g * deficit).sum(-1)) / torch.where(reach > 0, reach, 1.0)
    tau = torch.where((kappa == 0) & (alpha <= least), filled.tau.maximum(level), filled.tau)
    multipliers = torch.where(present, (deficit + tau.unsqueeze(-1)).clamp_min(0), 0.0)
    # Rounding may also hide the deficit of the one client that determines alpha.
    last = torch.where(g > 0, q / torch.where(g > 0, g, 1.0), 0.0)
    alone = torch.nn.functional.one_hot(last.argmax(-1), g.shape[-1]).to(g)
    hidden = ~(multipliers > 0).any(-1, keepdim=True)
    multipliers = torch.where(hidden, alone, multipliers)
    return ScaledGains(alpha, multipliers)


def dual_bound(
    q: Tensor, multipliers: Tensor, square: Tensor, kappa: Tensor, present: Tensor
) -> Tensor:
    """Lower bound [...] on the objective that multipliers lambda >= 0 of w <= y prove.

    The Lagrangian's minimum over w and a is 2 lambda'q - lambda'(I - 1 1'/(kappa + K)) lambda -
    ``square``. The best multiple of lambda is used, so only its direction matters.

    Args:
        q: weights [..., clients].
        multipliers: lambda [..., clients], 0 for absent clients.
        square: [...], at least the maximum of 2 sum lambda_i |a^H g_i| - ||a||^2 over a; with one
            antenna (lambda'g)^2.
        kappa: [...].
        present: clients [..., clients] that take part.
    """
    spread = multipliers.square().sum(-1)
    spread = spread - multipliers.sum(-1).square() / (kappa + present.sum(-1))
    size = spread + square
    gain = (multipliers * q).sum(-1).clamp_min(0)
    return torch.where(size > 0, gain.square() / torch.where(size > 0, size, 1.0), 0.0)
