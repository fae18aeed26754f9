"""The client side of an algorithm: the interface that executors use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from wirelessfl.errors import ConfigError
from wirelessfl.guard import overwrites
from wirelessfl.registry import Choice
from wirelessfl.training.cohort import Cohort, Penalty, State
from wirelessfl.training.payloads import Payload
from wirelessfl.wording import shown

UPDATE = (Payload("update", unit="lr"),)
"""The change of the model, the payload of most algorithms."""


@dataclass(frozen=True)
class ClientRule(Choice, ABC):
    """Local steps and payloads of clients that train together; tensors are [clients, P].

    Args:
        lr: step size gamma of the clients' SGD.
    """

    lr: Annotated[float, Field(gt=0, le=1e30, description="step size of the clients' SGD")] = 0.01

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """Payloads that clients send.

        A subclass may define a plain attribute instead, as for ``sends``, ``client_state`` and
        ``penalties``.
        """
        return UPDATE

    @property
    def sends(self) -> tuple[str, ...]:
        """Names of the server state that is sent to clients."""
        return ("params",)

    @property
    def client_state(self) -> tuple[str, ...]:
        """Names of the vectors [P] that each client keeps between rounds; initially zeros."""
        return ()

    @property
    def penalties(self) -> tuple[Penalty, ...]:
        """Terms of the clients' loss in addition to the cross-entropy."""
        return ()

    def begin(self, cohort: Cohort) -> State:
        """State of the clients' optimisers at the start of the local steps."""
        return {}

    @overwrites("grads")
    def gradient(self, grads: torch.Tensor, params: torch.Tensor, cohort: Cohort) -> torch.Tensor:
        """Corrected gradient, given the gradient of the loss; override to add corrections."""
        return grads

    @overwrites("grads", "state")
    def direction(self, grads: torch.Tensor, state: State) -> torch.Tensor:
        """Descent direction from corrected gradients; override to use moments from ``state``."""
        return grads

    @overwrites("params", "grads", "state")
    def step(
        self, params: torch.Tensor, grads: torch.Tensor, state: State, cohort: Cohort
    ) -> tuple[torch.Tensor, State]:
        """Take one local step; ``params`` may be updated in place.

        Raises:
            ConfigError: ``gradient`` or ``direction`` returns no tensor [clients, P].
        """
        corrected = self.gradient(grads, params, cohort)
        check_result(self, "gradient", corrected, grads.shape)
        direction = self.direction(corrected, state)
        check_result(self, "direction", direction, grads.shape)
        if self.shrink != 1.0:
            params.mul_(self.shrink)
        return params.sub_(direction, alpha=self.lr), state

    @property
    def shrink(self) -> float:
        """Factor by which a local step multiplies the parameters; below 1 for weight decay."""
        return 1.0

    @property
    def plain_sgd(self) -> bool:
        """Whether a local step is shrink * x - lr * gradient, which executors may fuse."""
        return self._steps_like(ClientRule)  # type: ignore[type-abstract]  # only its methods

    def _steps_like(self, other: type[ClientRule]) -> bool:
        """Whether this class inherits its local steps from ``other`` without overriding them."""
        mine = type(self)
        return (
            mine.gradient is other.gradient
            and mine.direction is other.direction
            and mine.step is other.step
        )

    def keep(self, params: torch.Tensor, state: State, cohort: Cohort) -> State:
        """State that each client keeps: [clients, P] by the names of ``client_state``.

        Called before ``send``, which must not change these tensors.
        """
        return {}

    @overwrites("params", "state")
    @abstractmethod
    def send(self, params: torch.Tensor, state: State, cohort: Cohort) -> dict[str, torch.Tensor]:
        """Payloads of each client after its local steps: [clients, P] by payload.

        ``params`` and ``state`` are not used afterwards and may be overwritten.
        """
        return {}


def check_result(
    rule: ClientRule, method: str, value: object, shape: Sequence[int], name: str = ""
) -> None:
    """Check a tensor that a method of a rule returned.

    Args:
        rule: the rule.
        method: name of the method.
        value: the tensor.
        shape: the shape that it must have.
        name: its name, if the method returns several values.

    Raises:
        ConfigError: it is not a tensor of this shape.
    """
    if isinstance(value, torch.Tensor) and value.shape == shape:
        return
    found = f"shape {list(value.shape)}" if isinstance(value, torch.Tensor) else shown(value)
    returned = f"{found} for {name!r}" if name else found
    raise ConfigError(
        f"algorithm {rule.title!r}: {method} returned {returned}. Return a tensor of shape "
        f"{list(shape)}."
    )


def checked_step(
    rule: ClientRule, params: torch.Tensor, grads: torch.Tensor, state: State, cohort: Cohort
) -> tuple[torch.Tensor, State]:
    """Take one local step of a rule, and check its result.

    Raises:
        ConfigError: ``step`` returns no pair of parameters [clients, P] and a state.
    """
    result = rule.step(params, grads, state, cohort)
    if not isinstance(result, tuple) or len(result) != 2:
        raise ConfigError(
            f"algorithm {rule.title!r}: step returned {shown(result)}. Return the next parameters "
            "and the state."
        )
    check_result(rule, "step", result[0], grads.shape, "params")
    return result
