"""FA-NT: local Adam with naive tracking; corrects after the moments (Chen et al., App. C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from wirelessfl.algorithms.fadamgc import LocalAdam
from wirelessfl.algorithms.tracking import TRACKING, Tracked
from wirelessfl.base.needs import Fits
from wirelessfl.training.cohort import Cohort
from wirelessfl.training.rules import State


def _sent_exactly(run: Any, choice: Any) -> bool:
    """Whether clients receive the server's own model, or compare no models."""
    return choice.variables == "two" or run.settings.downlink_compression is None


ONE_VARIABLE = (
    Fits(
        lambda run, choice: choice.variables == "two" or run.local is None,
        "needs a single server, but the algorithm runs in cells. Choose variables 'two'",
    ),
    Fits(
        lambda run, choice: choice.variables == "two" or run.sessions is None,
        "needs each client to receive the server's model in every round, which conflicts with "
        "sessions={run.sessions}: absent clients miss models, and a session may start from another "
        "one. Choose variables 'two'",
    ),
    Fits(
        lambda run, choice: choice.variables == "two" or run.settings.uplink_compression is None,
        "needs the server's step to be the mean of the clients' own steps, which conflicts with "
        "uplink_compression={run.settings.tables[uplink_compression][name]!r}. Choose variables "
        "'two', or uplink_compression 'none'",
    ),
    Fits(
        _sent_exactly,
        "needs each client to receive the server's model in every round, which conflicts with "
        "downlink_compression={run.settings.tables[downlink_compression][name]!r}: clients would "
        "compare compressed models. Choose variables 'two', or downlink_compression 'none'",
    ),
)
"""With one variable, a client computes the mean step of all clients from two consecutive models."""


@dataclass(frozen=True)
class FANT(Tracked, LocalAdam):
    """Local Adam with drift correction after the moments (Chen et al., 2025, Appendix C).

    x_i <- x_i - eta_l (m / (sqrt(vhat) + eps) + y - y_i), where y_i is the client's mean step.

    With two variables, a tracking client updates y_i <- y_i - y + (x - x_i)/(K eta_l) and sends
    its change.

    With one variable, z_i = y - y_i, clients send only their models, and update z_i when they
    receive the next model: z_i <- z_i + [(x - x_new)/eta_g - (x - x_i)] / (K eta_l), where eta_l
    is the step size of the round of x_i. (This corrects (114), which assumes eta_g = 1: with more
    the model diverges, with less it is held near its start.)

    The two forms are equivalent if all clients train and track in every round, and receive the
    server's exact model; variables="one" raises an error otherwise.
    """

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients")] = 1e-3
    variables: Annotated[
        Literal["two", "one"],
        Field(
            description="tracking variables: y and y_i (two), or z_i = y - y_i (one; requires all "
            "clients in every round)"
        ),
        ONE_VARIABLE,
    ] = "two"

    def check(self, clients: int, per_round: int, tracking: int) -> None:
        """Check that variables="one" has full participation."""
        super().check(clients, per_round, tracking)
        if self.variables == "one" and not clients == per_round == tracking:
            raise ValueError(
                f"variables='one' needs all {clients} clients to train and track in every round, "
                f"but {per_round} train and {tracking} track. Choose variables 'two'."
            )

    @property
    def tracked(self) -> tuple[str, ...]:
        """The tracking term y_i; none with one variable."""
        return (TRACKING,) if self.variables == "two" else ()

    @property
    def client_state(self) -> tuple[str, ...]:
        """y_i; with one variable, z_i without the term in x_new, and that round's x and K eta_l."""
        return (*super().client_state, *(() if self.tracked else ("correction", "seen", "reach")))

    def begin(self, cohort: Cohort) -> State:
        """Start with the round's constant correction: y - y_i, or z_i with one variable."""
        if self.tracked:
            correction = cohort.server[TRACKING] - cohort.kept[TRACKING]
        else:
            moved = (cohort.kept["seen"] - cohort.start) / (self.server_lr * self._reach(cohort))
            before = cohort.kept["reach"]
            # 0 before the first round.
            now = torch.full_like(before, self._reach(cohort))
            ratio = torch.where(before > 0, now / before, 1.0)  # exactly 1 for a constant eta_l
            correction = cohort.kept["correction"] + torch.where(cohort.fresh, 0.0, ratio * moved)
        return {**super().begin(cohort), "correction": correction}

    def step(
        self, params: torch.Tensor, grads: torch.Tensor, state: State, cohort: Cohort
    ) -> tuple[torch.Tensor, State]:
        """Step along Adam's direction plus the correction."""
        direction = self.direction(self.gradient(grads, params, cohort), state)
        return params.sub_(direction.add_(state["correction"]), alpha=self.lr), state

    def keep(self, params: torch.Tensor, state: State, cohort: Cohort) -> State:
        """Keep y_i of tracking clients; with one variable, z_i without the term in x_new."""
        mean, kept = self._mean_step(params, cohort), super().keep(params, state, cohort)
        if not self.tracked:
            return {
                **kept,
                "correction": state["correction"] - mean,
                "seen": cohort.start.clone(),
                "reach": torch.full_like(params, self._reach(cohort)),
            }
        now = torch.where(cohort.tracks, mean - state["correction"], cohort.kept[TRACKING])
        return {**kept, TRACKING: now}

    def send(self, params: torch.Tensor, state: State, cohort: Cohort) -> dict[str, torch.Tensor]:
        """Send the change of the model and, with two variables, of y_i."""
        change = self._mean_step(params, cohort)
        sent = super().send(params, state, cohort)
        if self.tracked:
            change = torch.where(cohort.tracks, change - cohort.server[TRACKING], 0.0)
            sent[TRACKING] = change
        return sent

    def _mean_step(self, params: torch.Tensor, cohort: Cohort) -> torch.Tensor:
        """Mean step (x - x_i) / (K eta_l)."""
        return (cohort.start - params) / self._reach(cohort)

    def _reach(self, cohort: Cohort) -> float:
        return cohort.local_steps * self.lr
