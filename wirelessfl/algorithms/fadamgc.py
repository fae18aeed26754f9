"""FAdamGC: local Adam with gradient correction (Chen et al., Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.local_adam import LocalAdam
from wirelessfl.algorithms.tracking import Tracking


@dataclass(frozen=True)
class FAdamGC(Tracking, LocalAdam):
    """Adam on the clients, whose gradients are corrected *before* they enter the moments.

    Round t, each sampled client i, from x_i = x, m = 0, v = vhat = v_i, K times:
        g_k: gradient of a mini-batch;  ghat = g_k + y - y_i;
        m = b1 m + (1 - b1) ghat;  v = b2 v + (1 - b2) ghat^2;  vhat = max(vhat, v);
        x_i <- x_i - eta_l m / (sqrt(vhat) + eps).
    If i tracks, y_i <- (1/K) sum_k g_k; v_i <- v.
    Server: x <- x + (eta_g / S) sum (x_i - x);  y <- y + (1/n) sum over trackers of y_i's change.

    With y = y_i = 0 it is LocalAdam. ``vhat="carried"`` keeps vhat between rounds too.
    """

    lr: Annotated[float, Field(gt=0, description="step size of the clients")] = 1e-3
