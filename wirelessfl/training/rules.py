"""The client side of an algorithm: local steps, what clients send, and what nodes receive."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

import torch
from pydantic import Field

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import overwrites
from wirelessfl.base.registry import Choice
from wirelessfl.base.wording import shown
from wirelessfl.models.submodels.extract import covered_mean
from wirelessfl.training.cohort import (
    Cohort,
    Penalty,
)


@dataclass(frozen=True)
class Payload:
    """A named vector that clients send.

    Args:
        name: key in the client rule's results and in the tensors of :class:`Received`.
        each: whether the server needs each client's vector; otherwise their weighted mean is
            sufficient.
        mean: whether ``merge`` uses the run's client weights (``weighting``: uniform or samples).
        change: whether it is the change of the client's model, if it is the first payload. Option D
            of schedule ``buffered`` measures the variance of these changes.
        unit: unit in which an analog uplink sends the payload; noise is proportional to it.
            ``lr``, the clients' step size, is the unit of accumulated gradients, (21) of HIST; None
            means 1; or a function of the rule and its number of local steps.
        senders: ``all`` clients of a round, or only its ``tracking`` clients
            (``tracking_clients``).
    """

    name: str
    each: bool = False
    mean: bool = True
    change: bool = True
    unit: Literal["lr"] | Callable[[Any, float], float] | None = None
    senders: Literal["all", "tracking"] = "all"

    def __post_init__(self) -> None:
        if self.unit not in ("lr", None) and not callable(self.unit):
            raise ValueError(
                f"unit of payload {self.name!r} is {self.unit!r}: choose 'lr' or None, or give a "
                "function of the rule and its number of local steps."
            )

    def unit_of(self, rule: ClientRule, local_steps: float) -> float:
        """The unit after ``local_steps`` local steps of a rule."""
        if callable(self.unit):
            return self.unit(rule, local_steps)
        return rule.lr if self.unit == "lr" else 1.0


@dataclass(frozen=True)
class Received:
    """The result of one upload, as received by the nodes.

    Args:
        mean: by payload, weighted mean over the clients of each node that sent it, [nodes, P]; zero
            if none did.
        each: individual vectors [clients, P] of the payloads that have ``each`` set.
        clients: [clients], indices of the senders.
        node: [clients], node of each sender.
        metrics: measurements of the uplink for this upload, e.g. its error, for the result rows.
        local_steps: H, local steps of each sender; their unweighted mean if they differ.
        steps: [clients], local steps of each sender.
        share: by payload, [nodes, 1], weight of its senders divided by the weight of all registered
            clients of the node. ``share * mean`` is the senders' weighted sum divided by the weight
            of all registered clients. If clients train submodels: [nodes, P], because the senders
            then differ by coordinate.
        staleness: [clients], number of merges since the model that each client received; None if
            all received the current model.
        weights: [clients], weight of each client in its node's means.
        covers: [clients, P] boolean, coordinates that each client trained, for algorithms that need
            individual payloads; None if all clients trained all coordinates.
        remembered: the server's memory of each client, [clients, P] by the names in the algorithm's
            ``remembers``; initially zeros.
    """

    mean: Mapping[str, torch.Tensor]
    each: Mapping[str, torch.Tensor]
    clients: IntArray
    node: IntArray
    metrics: Mapping[str, float] = field(default_factory=dict)
    local_steps: float = 1
    steps: Sequence[int] = ()
    share: Mapping[str, torch.Tensor] = field(default_factory=dict)
    staleness: IntArray | None = None
    weights: Sequence[float] = ()
    covers: torch.Tensor | None = None
    remembered: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def mean_of(self, values: torch.Tensor) -> torch.Tensor:
        """Weighted means [nodes, P] over the clients of each node that cover a coordinate.

        A coordinate that no client covers is 0.

        Args:
            values: [clients, P].
        """
        nodes = len(next(iter(self.mean.values())))
        total, weight = (values.new_zeros(nodes, values.shape[1]) for _ in range(2))
        for row, (node, share) in enumerate(zip(self.node.tolist(), self.weights, strict=True)):
            covered = 1.0 if self.covers is None else self.covers[row].to(values.dtype)
            total[node] += share * covered * values[row]
            weight[node] += share * covered
        return covered_mean(total, weight, 0.0)


State = dict[str, "torch.Tensor"]
"""Tensors by name: [clients, P] for clients, [P] for a server."""


UPDATE = (Payload("update", unit="lr"),)
"""The change of the model, the payload of most algorithms."""


@dataclass(frozen=True)
class ClientRule(Choice, ABC):
    """Local steps and payloads of clients that train together; tensors are [clients, P]."""

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
        """Take one local step; ``params`` may be updated in place."""
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


F = TypeVar("F", bound=Callable[..., Any])


def idle_at_zero(setting: str) -> Callable[[F], F]:
    """Decorate ``gradient``, ``direction`` or ``step``: it changes nothing if ``setting`` is 0."""

    def decorate(method: F) -> F:
        method.idle_at_zero = setting  # type: ignore[attr-defined]
        return method

    return decorate


def plain_sgd(rule: ClientRule) -> bool:
    """Whether a local step is shrink * x - lr * gradient, which executors may fuse."""
    methods = (
        vars(cls)[name]
        for cls in type(rule).__mro__
        for name in ("gradient", "direction", "step")
        if name in vars(cls) and cls is not ClientRule
    )
    settings = (getattr(method, "idle_at_zero", None) for method in methods)
    return all(setting is not None and getattr(rule, setting) == 0 for setting in settings)


def check_result(
    rule: ClientRule, method: str, value: object, shape: Sequence[int], name: str = ""
) -> None:
    """Raise unless a method of a rule returned a tensor of ``shape``.

    Args:
        method: name of the method.
        name: its name, if the method returns several values.
    """
    if isinstance(value, torch.Tensor) and value.shape == shape:
        return
    result = f"shape {list(value.shape)}" if isinstance(value, torch.Tensor) else shown(value)
    returned = f"{result} for {name!r}" if name else result
    raise ConfigError(
        f"algorithm {rule.title!r}: {method} returned {returned}. Return a tensor of shape "
        f"{list(shape)}."
    )


def checked_step(
    rule: ClientRule, params: torch.Tensor, grads: torch.Tensor, state: State, cohort: Cohort
) -> tuple[torch.Tensor, State]:
    """Take one local step of a rule, and check its result."""
    result = rule.step(params, grads, state, cohort)
    if not isinstance(result, tuple) or len(result) != 2:
        raise ConfigError(
            f"algorithm {rule.title!r}: step returned {shown(result)}. Return the next parameters "
            "and the state."
        )
    check_result(rule, "step", result[0], grads.shape, "params")
    return result
