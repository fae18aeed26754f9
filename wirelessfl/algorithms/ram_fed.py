"""RAM-Fed: RA-Fed whose server remembers every client's last change (KDD '23, supplement A.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.ra_fed import RaFed
from wirelessfl.training.cohort import State
from wirelessfl.training.payloads import Payload, Received

MEMORY = "memory"


@dataclass(frozen=True)
class RamFed(RaFed):
    """RA-Fed in which clients who do not cover a coordinate count with what they sent last.

    The server has u_n, of each client the latest accumulated gradient at each coordinate, Delta_n =
    (theta_{n,0} - theta_{n,T}) / gamma, zero at first (our choice), and their mean over all N
    registered clients. Every coordinate moves by gamma times

        v^i = (1/N) sum_n u_n^i + (1/Gamma^i) sum_{n covers i} (Delta_n - u_n)^i,

    without the second term where nobody covers it; then u_n^i <- Delta_n^i for those who do. The
    mean follows the changes, so that a round costs as much as its participants, not as all
    clients. With full submodels and everybody taking part it is FedAvg.

    The server needs each client's own update. What clients keep elsewhere (``client_states``: in
    host memory or on disk) holds for u_n, too. Where clients weigh by their samples, so do both
    means.

    Args:
        lr: step size gamma; half of RA-Fed's, because remembered changes may be stale.
    """

    name = "ram-fed"
    merges_by_lr: ClassVar[bool] = True

    lr: Annotated[float, Field(gt=0, description="step size of the clients' SGD")] = 0.05

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """The change of the model, one by one."""
        return (Payload("update", each=True, unit="lr"),)

    @property
    def remembers(self) -> tuple[str, ...]:
        """u_n."""
        return (MEMORY,)

    @property
    def recounted(self) -> tuple[str, ...]:
        """The mean of the u_n of the clients present."""
        return (*super().recounted, MEMORY)

    def initial(self, params: Tensor) -> State:
        """The mean of the u_n is 0."""
        return {**super().initial(params), MEMORY: torch.zeros_like(params)}

    def merge(self, server: State, received: Received) -> State:
        """theta <- theta - gamma v, times eta_g; the mean of the u_n follows their changes."""
        news = self._gradients(received).sub_(received.remembered[MEMORY])  # [clients, P], in place
        change = received.mean_of(news)
        direction = server[MEMORY] + change
        return {
            "params": server["params"] - self.server_lr * self.lr * direction,
            MEMORY: server[MEMORY] + received.share["update"] * change,
        }

    def remember(self, received: Received) -> State:
        """u_n <- Delta_n, where the client covers it."""
        latest, before = self._gradients(received), received.remembered[MEMORY]
        if received.covers is None:
            return {MEMORY: latest}
        return {MEMORY: torch.where(received.covers, latest, before, out=latest)}

    def _gradients(self, received: Received) -> Tensor:
        """Delta_n [clients, P], zero where a client covers nothing, in memory of its own."""
        return received.each["update"] / -self.lr
