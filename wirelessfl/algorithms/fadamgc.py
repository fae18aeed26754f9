"""FAdamGC: local Adam with gradient correction (Chen et al., Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from wirelessfl.algorithms.local_adam import LocalAdam
from wirelessfl.algorithms.tracking import Tracking


@dataclass(frozen=True)
class FAdamGC(Tracking, LocalAdam):
    """Local Adam with gradient correction before the moments (Chen et al., 2025, Algorithm 1).

    In round t each sampled client i starts from x_i = x, m = 0, v = vhat = v_i, and K times does
        g_k: gradient of a mini-batch;  ghat = g_k + y - y_i;
        m = b1 m + (1 - b1) ghat;  v = b2 v + (1 - b2) ghat^2;  vhat = max(vhat, v);
        x_i <- x_i - eta_l m / (sqrt(vhat) + eps).
    Then v_i <- v and, if client i tracks, y_i <- (1/K) sum_k g_k.
    Server: x <- x + (eta_g / S) sum (x_i - x);  y <- y + (1/n) sum over trackers of y_i's change.

    With y = y_i = 0 it equals LocalAdam. ``vhat="carried"`` also keeps vhat between rounds.
    """

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients")] = 1e-3
