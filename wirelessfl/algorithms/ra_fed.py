"""RA-Fed and RAM-Fed: submodels of arbitrary neurons (KDD '23, supplements A.1 and A.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.algorithms.algorithm import ServerMemory
from wirelessfl.algorithms.assigners.arbitrary import Masked
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.step_sizes import EQUAL_STEPS
from wirelessfl.training.rules import Payload, Received, State


@dataclass(frozen=True)
class RaFed(Masked, FedAvg):
    """FedAvg on submodels, averaged per coordinate over the clients that cover it (KDD '23).

    theta^i <- theta^i - (1/Gamma^i) sum_{n covers i} (theta_{n,0} - theta_{n,T})^i. Coordinates
    that no client covers in a round do not change. With full submodels it equals FedAvg. With
    disjoint submodels it equals HIST with one client per cell and one edge round.
    """

    name = "ra-fed"

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.1


MEMORY = "memory"


@dataclass(frozen=True)
class RamFed(ServerMemory, RaFed):
    """RA-Fed with server memory: uncovered coordinates use each client's last update (KDD '23).

    For each client the server stores u_n, the latest accumulated gradient at each coordinate,
    Delta_n = (theta_{n,0} - theta_{n,T}) / gamma, zero at first (our choice). It also stores the
    mean of u_n over all N registered clients. Each coordinate changes by -gamma times

        v^i = (1/N) sum_n u_n^i + (1/Gamma^i) sum_{n covers i} (Delta_n - u_n)^i,

    without the second term if no client covers it. Then u_n^i <- Delta_n^i for clients that cover
    it. The mean is updated from the changes, so the cost of a round grows with its participants,
    not with all clients. With full submodels and full participation it equals FedAvg.

    The server needs each client's update. The setting ``client_states`` (host memory or disk) also
    applies to u_n. If clients are weighted by their samples, both means are weighted too.
    """

    name = "ram-fed"

    lr: Annotated[
        float, Field(gt=0, le=1e30, description="step size of the clients' SGD"), EQUAL_STEPS
    ] = 0.05

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """The change of the model, from each client individually."""
        return (Payload("update", each=True, unit="lr"),)

    @property
    def remembers(self) -> tuple[str, ...]:
        """The vectors u_n."""
        return (MEMORY,)

    @property
    def recounted(self) -> tuple[str, ...]:
        """The mean of u_n over the registered clients."""
        return (*super().recounted, MEMORY)

    def initial(self, params: torch.Tensor) -> State:
        """Start with u_n = 0, whose mean is 0."""
        return {**super().initial(params), MEMORY: torch.zeros_like(params)}

    def merge(self, server: State, received: Received) -> State:
        """Step theta <- theta - eta_g gamma v, and update the mean of u_n."""
        delta = self._gradients(received)  # [clients, P]
        change = received.mean_of(delta.sub_(received.remembered[MEMORY]))
        direction = server[MEMORY] + change
        return {
            "params": server["params"] - self.server_lr * self.lr * direction,
            MEMORY: server[MEMORY] + received.share["update"] * change,
        }

    def remember(self, received: Received) -> State:
        """Set u_n <- Delta_n at coordinates that the client covers."""
        latest, before = self._gradients(received), received.remembered[MEMORY]
        if received.covers is None:
            return {MEMORY: latest}
        return {MEMORY: torch.where(received.covers, latest, before, out=latest)}

    def _gradients(self, received: Received) -> torch.Tensor:
        """Delta_n [clients, P] as a new tensor, zero at coordinates a client does not cover."""
        return received.each["update"] / -self.lr
