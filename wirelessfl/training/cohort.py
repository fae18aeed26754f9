"""Clients that train together: the input of their update rule and the terms of their loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from wirelessfl.submodels import ParamSpec

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
