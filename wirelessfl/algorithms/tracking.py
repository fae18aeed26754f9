"""Drift correction by tracked gradients, for SCAFFOLD and FAdamGC to derive from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.training.cohort import Cohort, State
from wirelessfl.training.payloads import Payload, Received

TRACKING = "tracking"


@dataclass(frozen=True)
class Tracked(Algorithm):
    """A term y_i that each client keeps, and y, their mean over all n clients, at the server.

    A client that trains and tracks (all do, or S_tilde of the S) sends the change of its y_i; the
    server adds their sum over n, the number of registered clients, to y. Both begin at 0, and a
    client that is not asked keeps its y_i. Where clients weigh by their samples, so do these sums.

    Inside cells (``--local``) the edge server holds y_j, of its own clients alone, so drift between
    cells stays uncorrected; y_j and y_i cover all coordinates, and each round uses and changes
    those of the cell's submodel.
    """

    name = ""

    @property
    def tracked(self) -> tuple[str, ...]:
        """Names of what is tracked: one, or none where a subclass does without."""
        return (TRACKING,)

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """What is sent without it, and from trackers the change of y_i."""
        changes = (Payload(name, senders="tracking") for name in self.tracked)
        return (*super().payloads, *changes)

    @property
    def sends(self) -> tuple[str, ...]:
        """What is sent without it, and y."""
        return (*super().sends, *self.tracked)

    @property
    def client_state(self) -> tuple[str, ...]:
        """What is kept without it, and y_i."""
        return (*super().client_state, *self.tracked)

    @property
    def recounted(self) -> tuple[str, ...]:
        """y, the mean of the y_i of the clients present."""
        return (*super().recounted, *self.tracked)

    def unit(self, payload: Payload, local_steps: int) -> float:
        """Over the air y_i's change is sent K times as large: as accumulated gradients (21)."""
        if payload.name == TRACKING:
            return 1.0 / local_steps
        return super().unit(payload, local_steps)

    def initial(self, params: Tensor) -> State:
        """y = 0."""
        zeros = {name: torch.zeros_like(params) for name in self.tracked}
        return {**super().initial(params), **zeros}

    def merge(self, server: State, received: Received) -> State:
        """y <- y + (1/n) sum over trackers of the change."""
        moved = {
            name: server[name] + received.share[name] * received.mean[name] for name in self.tracked
        }
        return {**super().merge(server, received), **moved}


@dataclass(frozen=True)
class Tracking(Tracked):
    """Local steps along g + y - y_i, where y_i is the mean of client i's last K raw gradients.

    y_i becomes the mean of the gradients just computed, before any correction or moment. Place it
    before the algorithm that it corrects: ``class Scaffold(Tracking, FedAvg)``.
    """

    name = ""

    def begin(self, cohort: Cohort) -> State:
        """The sum of raw gradients."""
        return {**super().begin(cohort), "gradients": torch.zeros_like(cohort.kept[TRACKING])}

    def gradient(self, grads: Tensor, params: Tensor, cohort: Cohort) -> Tensor:
        """g + y - y_i."""
        corrected = super().gradient(grads, params, cohort)
        return corrected + cohort.server[TRACKING] - cohort.kept[TRACKING]

    def step(
        self, params: Tensor, grads: Tensor, state: State, cohort: Cohort
    ) -> tuple[Tensor, State]:
        """Add up the raw gradient, then step."""
        state["gradients"].add_(grads)
        return super().step(params, grads, state, cohort)

    def keep(self, params: Tensor, state: State, cohort: Cohort) -> State:
        """y_i = (1/K) sum_k g_k of those who track; the others' as it was."""
        mean, before = state["gradients"] / cohort.local_steps, cohort.kept[TRACKING]
        now = torch.where(cohort.tracks, mean, before)
        return {**super().keep(params, state, cohort), TRACKING: now}

    def send(self, params: Tensor, state: State, cohort: Cohort) -> dict[str, Tensor]:
        """The change of y_i, beside the model's."""
        mean, before = state["gradients"] / cohort.local_steps, cohort.kept[TRACKING]
        change = torch.where(cohort.tracks, mean - before, 0.0)
        return {**super().send(params, state, cohort), TRACKING: change}
