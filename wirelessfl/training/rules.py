"""The client half of an algorithm: what executors ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from wirelessfl.registry import Choice
from wirelessfl.training.cohort import Cohort, Penalty, State
from wirelessfl.training.payloads import Payload


@dataclass(frozen=True)
class ClientRule(Choice, ABC):
    """Local steps of clients that train together, and what they send. Tensors are [clients, P].

    Args:
        lr: step size gamma of the clients' SGD.
    """

    lr: Annotated[float, Field(gt=0, description="step size of the clients' SGD")] = 0.01

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """What clients send; a subclass may have a plain attribute instead, like the next two."""
        return (Payload("update", unit="lr"),)

    @property
    def sends(self) -> tuple[str, ...]:
        """Which of its state the server sends to its clients."""
        return ("params",)

    @property
    def client_state(self) -> tuple[str, ...]:
        """What each client keeps between its turns, [P] each, zeros at first."""
        return ()

    @property
    def penalties(self) -> tuple[Penalty, ...]:
        """Terms of the clients' loss beside the cross-entropy."""
        return ()

    def begin(self, cohort: Cohort) -> State:
        """State of the clients' optimisers, fresh for these local steps."""
        return {}

    def gradient(self, grads: Tensor, params: Tensor, cohort: Cohort) -> Tensor:
        """The gradient to step along, given that of the loss: corrections go here."""
        return grads

    def direction(self, grads: Tensor, state: State) -> Tensor:
        """What to step along, from corrected gradients: moments go here, and change ``state``."""
        return grads

    def step(
        self, params: Tensor, grads: Tensor, state: State, cohort: Cohort
    ) -> tuple[Tensor, State]:
        """One local step. ``params`` belongs to the caller's step and may be updated in place."""
        direction = self.direction(self.gradient(grads, params, cohort), state)
        if self.shrink != 1.0:
            params.mul_(self.shrink)
        return params.sub_(direction, alpha=self.lr), state

    @property
    def shrink(self) -> float:
        """What a local step multiplies the parameters by: less than 1 with weight decay."""
        return 1.0

    @property
    def plain_sgd(self) -> bool:
        """Whether a local step is shrink * x - lr * gradient, which executors may fuse."""
        return self._steps_like(ClientRule)  # type: ignore[type-abstract]  # for its methods

    def _steps_like(self, other: type[ClientRule]) -> bool:
        """Whether local steps are those of ``other``, not changed by a subclass."""
        mine = type(self)
        return (
            mine.gradient is other.gradient
            and mine.direction is other.direction
            and mine.step is other.step
        )

    def keep(self, params: Tensor, state: State, cohort: Cohort) -> State:
        """What each client keeps for its next turn: [clients, P] by the names of ``client_state``.

        Called before ``send``, which must leave these tensors alone.
        """
        return {}

    @abstractmethod
    def send(self, params: Tensor, state: State, cohort: Cohort) -> dict[str, Tensor]:
        """What each client sends after its local steps: [clients, P] for each payload.

        ``params`` and ``state`` are not used again, and may be overwritten.
        """
        return {}
