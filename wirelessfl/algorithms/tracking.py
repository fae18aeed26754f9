"""Base classes for drift correction by tracked gradients (SCAFFOLD, FAdamGC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from wirelessfl.algorithms.algorithm import ServerMemory
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import Payload, Received, State

TRACKING = "tracking"


def _per_step(_: Any, local_steps: float) -> float:
    """Unit 1/K of the change of y_i, which is then sent as accumulated gradients (21)."""
    return 1.0 / local_steps


@dataclass(frozen=True)
class Tracked(ServerMemory):
    """Tracking term y_i at each client, and the mean y over all n clients at the server.

    A tracking client (all S clients of a round, or S_tilde of them) sends the change of its y_i.
    The server divides the sum of the changes by n, the number of registered clients, and adds it to
    y. All terms are 0 at first. A client that does not track in a round keeps its y_i. If clients
    are weighted by their samples, these sums are weighted too.

    Inside cells (``--local``) the edge server holds y_j, the mean over its clients only, so drift
    between cells stays uncorrected. y_j and y_i cover all coordinates; each round reads and updates
    the coordinates of the cell's submodel.
    """

    name = ""

    @property
    def tracked(self) -> tuple[str, ...]:
        """Names of the tracking terms: one, or none if a subclass does not need it."""
        return (TRACKING,)

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """The base algorithm's payloads, plus the change of y_i from tracking clients."""
        changes = (Payload(name, unit=_per_step, senders="tracking") for name in self.tracked)
        return (*super().payloads, *changes)

    @property
    def sends(self) -> tuple[str, ...]:
        """What the base algorithm's server sends, plus y."""
        return (*super().sends, *self.tracked)

    @property
    def client_state(self) -> tuple[str, ...]:
        """The base algorithm's client state, plus y_i."""
        return (*super().client_state, *self.tracked)

    @property
    def recounted(self) -> tuple[str, ...]:
        """y, the mean of y_i over the registered clients."""
        return (*super().recounted, *self.tracked)

    def initial(self, params: torch.Tensor) -> State:
        """Start with y = 0."""
        zeros = {name: torch.zeros_like(params) for name in self.tracked}
        return {**super().initial(params), **zeros}

    def merge(self, server: State, received: Received) -> State:
        """Update y <- y + (1/n) times the sum of the tracking clients' changes."""
        moved = {
            name: server[name] + received.share[name] * received.mean[name] for name in self.tracked
        }
        return {**super().merge(server, received), **moved}


@dataclass(frozen=True)
class Tracking(Tracked):
    """Local steps along g + y - y_i, where y_i is the mean of client i's last K raw gradients.

    After the local steps y_i becomes the mean of the gradients just computed, before any correction
    or moment. As a base class it precedes the algorithm that it corrects:
    ``class Scaffold(Tracking, FedAvg)``.
    """

    name = ""

    def begin(self, cohort: Cohort) -> State:
        """Start the sum of the raw gradients at 0."""
        return {**super().begin(cohort), "gradients": torch.zeros_like(cohort.kept[TRACKING])}

    def gradient(self, grads: torch.Tensor, params: torch.Tensor, cohort: Cohort) -> torch.Tensor:
        """Return g + y - y_i."""
        corrected = super().gradient(grads, params, cohort)
        return corrected + cohort.server[TRACKING] - cohort.kept[TRACKING]

    def step(
        self, params: torch.Tensor, grads: torch.Tensor, state: State, cohort: Cohort
    ) -> tuple[torch.Tensor, State]:
        """Add the raw gradient to the sum, then step."""
        state["gradients"].add_(grads)
        return super().step(params, grads, state, cohort)

    def keep(self, params: torch.Tensor, state: State, cohort: Cohort) -> State:
        """Keep y_i = (1/K) sum_k g_k for tracking clients, and the old y_i for the others."""
        mean, before = state["gradients"] / cohort.local_steps, cohort.kept[TRACKING]
        now = torch.where(cohort.tracks, mean, before)
        return {**super().keep(params, state, cohort), TRACKING: now}

    def send(self, params: torch.Tensor, state: State, cohort: Cohort) -> dict[str, torch.Tensor]:
        """Send the changes of the model and of y_i."""
        mean, before = state["gradients"] / cohort.local_steps, cohort.kept[TRACKING]
        change = torch.where(cohort.tracks, mean - before, 0.0)
        return {**super().send(params, state, cohort), TRACKING: change}
