"""Spread of the latest updates of a task, by which option D reallocates requests."""

from __future__ import annotations

import math

from torch import Tensor


def spread(updates: Tensor, lr: float, server_lr: float, local_steps: int) -> float | None:
    """Spread sigma_m, with sigma_m^2 = eta_c eta_s tau (1/V) sum ||D_i - D||^2 / ||D||^2.

    D is the mean of the updates D_i (Askin et al., UAI 2024, Algorithm 4).

    Args:
        updates: [V, P], latest updates D_i = (x - x_tau)/(tau eta_c), with the step size eta_c of
            the round of each update; a common factor cancels.
        lr: eta_c, current step size of the clients.
        server_lr: eta_s, step size of the server along the mean update.
        local_steps: tau, number of local steps.

    Returns:
        sigma_m; None if the mean is zero or training has diverged.
    """
    mean = updates.mean(0)
    size = float(mean.square().sum())
    if not 0.0 < size < math.inf:
        return None
    apart = float((updates - mean).square().sum()) / len(updates) / size
    sigma = (lr * server_lr * local_steps * apart) ** 0.5
    return sigma if math.isfinite(sigma) else None
