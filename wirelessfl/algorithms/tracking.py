"""Drift correction by tracked gradients, for SCAFFOLD and FAdamGC to derive from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.training.rules import Cohort, Payload, Received, State

TRACKING = Payload("tracking", senders="tracking")


@dataclass(frozen=True)
class Tracking(Algorithm):
    """Local steps along g + y - y_i, where y_i is client i's mean gradient, and y that of all.

    A client that trains and tracks (all do, or S_tilde of the S) replaces y_i by the mean of the K
    gradients it has just computed, before any correction, and sends the change; the server adds
    their sum over n, the number of registered clients, to y. Both begin at 0, and a client that is
    not asked keeps its y_i. Where clients weigh by their samples, so do these sums.

    Place it before the algorithm that it corrects: ``class Scaffold(Tracking, FedAvg)``.

    Inside cells (``--local``) the edge server holds y_j, of its own clients alone, so drift between
    cells stays uncorrected; y_j and y_i cover all coordinates, and each round uses and changes
    those of the cell's submodel.
    """

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """What is sent without it, and from trackers the change of y_i."""
        return (*super().payloads, TRACKING)

    @property
    def sends(self) -> tuple[str, ...]:
        """What is sent without it, and y."""
        return (*super().sends, "tracking")

    @property
    def client_state(self) -> tuple[str, ...]:
        """What is kept without it, and y_i."""
        return (*super().client_state, "tracking")

    def unit(self, payload: Payload, local_steps: int) -> float:
        """Over the air y_i's change is sent K times as large: as accumulated gradients (21)."""
        if payload == TRACKING:
            return 1.0 / local_steps
        return super().unit(payload, local_steps)

    def initial(self, params: Tensor) -> State:
        """y = 0."""
        return {**super().initial(params), "tracking": torch.zeros_like(params)}

    def begin(self, cohort: Cohort) -> State:
        """The sum of raw gradients."""
        return {**super().begin(cohort), "gradients": torch.zeros_like(cohort.own["tracking"])}

    def gradient(self, grads: Tensor, params: Tensor, cohort: Cohort) -> Tensor:
        """g + y - y_i: the correction comes before any moment."""
        corrected = super().gradient(grads, params, cohort)
        return corrected + cohort.server["tracking"] - cohort.own["tracking"]

    def step(
        self, params: Tensor, grads: Tensor, state: State, cohort: Cohort
    ) -> tuple[Tensor, State]:
        """Add up the raw gradient, then step."""
        state["gradients"].add_(grads)
        return super().step(params, grads, state, cohort)

    def keep(self, params: Tensor, state: State, cohort: Cohort) -> State:
        """y_i = (1/K) sum_k g_k of those who track; the others' as it was."""
        mean, before = state["gradients"] / cohort.local_steps, cohort.own["tracking"]
        now = torch.where(cohort.tracks, mean, before)
        return {**super().keep(params, state, cohort), "tracking": now}

    def send(self, params: Tensor, state: State, cohort: Cohort) -> dict[str, Tensor]:
        """The change of y_i, beside the model's."""
        mean, before = state["gradients"] / cohort.local_steps, cohort.own["tracking"]
        change = torch.where(cohort.tracks, mean - before, 0.0)
        return {**super().send(params, state, cohort), "tracking": change}

    def merge(self, server: State, received: Received) -> State:
        """y <- y + (1/n) sum over trackers of the change."""
        total = received.share["tracking"] * received.mean["tracking"]
        return {**super().merge(server, received), "tracking": server["tracking"] + total}
