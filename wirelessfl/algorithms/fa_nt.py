"""FA-NT: local Adam with naive tracking, the correction after the moments (Chen et al., App. C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from wirelessfl.algorithms.local_adam import LocalAdam
from wirelessfl.algorithms.tracking import TRACKING, Tracked
from wirelessfl.training.cohort import Cohort, State


@dataclass(frozen=True)
class FANT(Tracked, LocalAdam):
    """Adam on the clients, corrected *after* the moments by tracked mean steps.

    x_i <- x_i - eta_l (m / (sqrt(vhat) + eps) + y - y_i), y_i being the client's mean step.

    With two variables a tracking client sends the change of y_i = y_i - y + (x - x_i)/(K eta_l).

    With one, z_i = y - y_i, clients send the model alone and work out the rest from the next model
    they are sent: z_i <- z_i + [(x - x_new)/eta_g - (x - x_i)] / (K eta_l). ((114) as printed has
    eta_g = 1 and diverges otherwise.) That is the same when all clients take part and track in
    every round; otherwise it is refused.

    Args:
        variables: y and y_i, or z_i alone.
    """

    lr: Annotated[float, Field(gt=0, description="step size of the clients")] = 1e-3
    variables: Annotated[
        Literal["two", "one"],
        Field(description="y and y_i, or z_i = y - y_i alone (all clients in every round)"),
    ] = "two"

    def check(self, clients: int, per_round: int, tracking: int) -> None:
        """One variable needs everybody, and one server that they all hear."""
        super().check(clients, per_round, tracking)
        if self.variables == "one" and not clients == per_round == tracking:
            raise ValueError(
                f"variables is 'one', with {per_round} of {clients} clients a round, {tracking} of "
                "which track: it needs all of them. Choose variables 'two'."
            )
        if self.variables == "one" and self.topology != "star":
            raise ValueError("variables is 'one', inside cells: it needs one server. Choose 'two'.")

    @property
    def tracked(self) -> tuple[str, ...]:
        """Nothing where z_i does."""
        return (TRACKING,) if self.variables == "two" else ()

    @property
    def client_state(self) -> tuple[str, ...]:
        """y_i; or z_i without what the next model will tell, and the model that was sent."""
        return (*super().client_state, *(("correction", "seen") if not self.tracked else ()))

    def begin(self, cohort: Cohort) -> State:
        """The correction y - y_i, or z_i, the same for all steps of the round."""
        if self.tracked:
            correction = cohort.server[TRACKING] - cohort.kept[TRACKING]
        else:
            moved = (cohort.kept["seen"] - cohort.start) / (self.server_lr * self._reach(cohort))
            correction = cohort.kept["correction"] + torch.where(cohort.fresh, 0.0, moved)
        return {**super().begin(cohort), "correction": correction}

    def step(
        self, params: Tensor, grads: Tensor, state: State, cohort: Cohort
    ) -> tuple[Tensor, State]:
        """Adam's direction, then the correction."""
        direction = self.direction(self.gradient(grads, params, cohort), state)
        return params.sub_(direction.add_(state["correction"]), alpha=self.lr), state

    def keep(self, params: Tensor, state: State, cohort: Cohort) -> State:
        """y_i of those who track, or z_i as far as it is known."""
        mean, kept = self._mean_step(params, cohort), super().keep(params, state, cohort)
        if not self.tracked:
            return {**kept, "correction": state["correction"] - mean, "seen": cohort.start.clone()}
        now = torch.where(cohort.tracks, mean - state["correction"], cohort.kept[TRACKING])
        return {**kept, TRACKING: now}

    def send(self, params: Tensor, state: State, cohort: Cohort) -> dict[str, Tensor]:
        """The model's change, and with two variables that of y_i."""
        change = self._mean_step(params, cohort)
        sent = super().send(params, state, cohort)
        if self.tracked:
            change = torch.where(cohort.tracks, change - cohort.server[TRACKING], 0.0)
            sent[TRACKING] = change
        return sent

    def _mean_step(self, params: Tensor, cohort: Cohort) -> Tensor:
        """(x - x_i) / (K eta_l)."""
        return (cohort.start - params) / self._reach(cohort)

    def _reach(self, cohort: Cohort) -> float:
        return cohort.local_steps * self.lr
