"""The client side of an algorithm: the interface that executors use.

Clients that train together: the input of their update rule and the terms of their loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import torch
from pydantic import Field

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import overwrites
from wirelessfl.base.registry import Choice
from wirelessfl.base.wording import shown
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.payloads import Payload

State = dict[str, "torch.Tensor"]
"""Tensors by name: [clients, P] for clients, [P] for a server."""


@dataclass(frozen=True)
class Cohort:
    """Clients that train together; the leading axis of every tensor indexes clients.

    A rule must not depend on client indices, because a GPU replays the same operations for other
    clients.

    Args:
        server: tensors that the server sent to each client, [clients, P] by name: ``params``, the
            other names in the algorithm's ``sends``, and any that the penalties need.
        local_steps: H, local steps of each client.
        kept: state that each client kept after its previous local steps, [clients, P] by the names
            in the algorithm's ``client_state``; initially zeros. Read-only.
        tracks: [clients, 1] boolean, whether a client sends the payloads of tracking clients.
        fresh: [clients, 1] boolean, whether a client trains for the first time.
        penalties: terms of the clients' loss in addition to the cross-entropy.
        factors: see ``Factors``.
    """

    server: Mapping[str, torch.Tensor]
    local_steps: int
    kept: Mapping[str, torch.Tensor] = field(default_factory=dict)
    tracks: torch.Tensor = field(default_factory=lambda: torch.ones(1, 1, dtype=torch.bool))
    fresh: torch.Tensor = field(default_factory=lambda: torch.ones(1, 1, dtype=torch.bool))
    penalties: tuple[Penalty, ...] = ()
    factors: Factors = field(default_factory=dict)

    @property
    def start(self) -> torch.Tensor:
        """Parameters [clients, P] that each client received."""
        return self.server["params"]


@dataclass(frozen=True)
class Outputs:
    """Outputs of a model for a batch.

    Args:
        logits: [batch, classes], or outputs of another shape for other losses.
        features: [batch, f], the flattened input of the last ``nn.Linear`` that runs; in a linear
            model these are the samples. None if they are not needed.
    """

    logits: torch.Tensor
    features: torch.Tensor | None = None


@dataclass(frozen=True)
class Penalty(ABC):
    """A term of every sample's loss that compares the model's outputs with those of other models.

    Its fields are settings: the object is hashed, compared and sent to other processes. A sample's
    term must depend on that sample only, because batches are padded.
    """

    features: ClassVar[bool] = False
    """Whether the term needs features in addition to logits."""
    of_classes: ClassVar[bool] = False
    """Whether the term needs logits [batch, classes] and a label per sample."""

    @abstractmethod
    def anchors(self, cohort: Cohort) -> dict[str, torch.Tensor]:
        """Parameters [clients, P] of the models to compare with, by freely chosen names.

        These models receive no gradient and run in evaluation mode, without dropout.
        """

    @abstractmethod
    def loss(
        self, outputs: Outputs, anchors: Mapping[str, Outputs], y: torch.Tensor
    ) -> torch.Tensor:
        """The term of each sample, [batch].

        Args:
            outputs: outputs of the model in training.
            anchors: outputs of the models from :meth:`anchors`, by name.
            y: [batch, ...], labels.
        """


Factors = Mapping[str, "torch.Tensor"]
"""By name of a weight, a factor [clients] of all inputs that the weight multiplies."""


def scaled(params: dict[str, torch.Tensor], factors: Factors) -> dict[str, torch.Tensor]:
    """Parameters of one client whose outputs are those of ``params`` with scaled inputs."""
    return params | {name: params[name] * factor for name, factor in factors.items()}


Anchors = tuple[dict[str, dict[str, "torch.Tensor"]], ...]
"""For each penalty, the parameters of its anchors: [clients, *shape] by anchor and tensor."""


def anchors_of(cohort: Cohort, spec: ParamSpec) -> Anchors:
    """The anchors of the cohort's penalties."""
    return tuple(
        {name: spec.views(value) for name, value in penalty.anchors(cohort).items()}
        for penalty in cohort.penalties
    )


@dataclass(frozen=True)
class Terms:
    """Terms of the clients' loss in addition to that of the samples.

    Args:
        penalties: the terms.
        anchors: for each penalty, the parameters of the models that it compares with, for all
            clients of a cohort or for one client.
        factors: factors of the inputs of weights, for all clients or for one.
    """

    penalties: tuple[Penalty, ...] = ()
    anchors: Anchors = ()
    factors: Factors = field(default_factory=dict)

    @classmethod
    def of(cls, cohort: Cohort, spec: ParamSpec) -> Terms:
        """The terms of a cohort."""
        return cls(cohort.penalties, anchors_of(cohort, spec), cohort.factors)

    @classmethod
    def of_first(cls, cohort: Cohort, spec: ParamSpec) -> Terms:
        """The terms of a cohort's first client, without the leading axis."""
        alone = torch.utils._pytree.tree_map(
            lambda value: value[0], (anchors_of(cohort, spec), dict(cohort.factors))
        )
        return cls(cohort.penalties, *alone)


NO_TERMS = Terms()


def need_features(penalties: Iterable[Penalty]) -> bool:
    """Whether any penalty needs features."""
    return any(penalty.features for penalty in penalties)


def total(
    penalties: Sequence[Penalty],
    outputs: Outputs,
    anchors: Sequence[Mapping[str, Outputs]],
    y: torch.Tensor,
) -> torch.Tensor:
    """The sum of ``penalties`` for each sample, [batch].

    Args:
        penalties: the terms, at least one.
        outputs: outputs of the model in training.
        anchors: for each penalty, the outputs of its anchors.
        y: [batch], labels.
    """
    first, *others = (
        penalty.loss(outputs, others, y) for penalty, others in zip(penalties, anchors, strict=True)
    )
    return sum(others, start=first)


UPDATE = (Payload("update", unit="lr"),)
"""The change of the model, the payload of most algorithms."""


@dataclass(frozen=True)
class ClientRule(Choice, ABC):
    """Local steps and payloads of clients that train together; tensors are [clients, P].

    Args:
        lr: step size gamma of the clients' SGD.
    """

    name = "rules"

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
