"""Clients that train together: what their update rule sees, and the terms of their loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from wirelessfl.submodels import ParamSpec

State = dict[str, Tensor]
"""Tensors by name: [clients, P] on clients, [P] at a server."""


@dataclass(frozen=True)
class Cohort:
    """Clients that train together; everything has them on its leading axis.

    A rule sees no client's number: on a GPU the same operations are replayed for other clients.

    Args:
        server: what their server sent them, [clients, P] by name: ``params`` and what else is
            among the algorithm's ``sends``, or sent for the penalties.
        local_steps: H, steps that each takes.
        kept: what each has kept from its last turn, [clients, P] by the names in the algorithm's
            ``client_state``; zeros at first. Not to be written to.
        tracks: [clients, 1] boolean, who sends the payloads that only trackers send.
        fresh: [clients, 1] boolean, who has never trained before.
        penalties: terms of their loss beside the cross-entropy.
    """

    server: Mapping[str, Tensor]
    local_steps: int
    kept: Mapping[str, Tensor] = field(default_factory=dict)
    tracks: Tensor = field(default_factory=lambda: torch.ones(1, 1, dtype=torch.bool))
    fresh: Tensor = field(default_factory=lambda: torch.ones(1, 1, dtype=torch.bool))
    penalties: tuple[Penalty, ...] = ()

    @property
    def start(self) -> Tensor:
        """Parameters [clients, P] that each client was sent."""
        return self.server["params"]


@dataclass(frozen=True)
class Outputs:
    """What a model gives for a batch.

    Args:
        logits: [batch, classes].
        features: [batch, f], the input of the ``nn.Linear`` that runs last, flattened; of a linear
            model the samples themselves. None where they are not needed.
    """

    logits: Tensor
    features: Tensor | None = None


@dataclass(frozen=True)
class Penalty(ABC):
    """A term of the loss of every sample, given the outputs of some other models on it.

    Its fields are settings: it is hashed, compared, and sent to other processes. A sample's term
    depends on that sample alone, so that batches can be padded.
    """

    features: ClassVar[bool] = False
    """Whether it needs features, beside logits."""

    @abstractmethod
    def anchors(self, cohort: Cohort) -> dict[str, Tensor]:
        """The models that it compares with: parameters [clients, P] by a name of its choice.

        They get no gradient, and run in evaluation mode: without dropout.
        """

    @abstractmethod
    def loss(self, outputs: Outputs, anchors: Mapping[str, Outputs], y: Tensor) -> Tensor:
        """The term [batch] of each sample.

        Args:
            outputs: of the model in training.
            anchors: of the others, by name.
            y: [batch], labels.
        """


Anchors = tuple[dict[str, dict[str, Tensor]], ...]
"""By penalty, the parameters of its anchors: [clients, *shape] by anchor and tensor."""


def anchors_of(cohort: Cohort, spec: ParamSpec) -> Anchors:
    """The anchors of the cohort's penalties."""
    return tuple(
        {name: spec.views(value) for name, value in penalty.anchors(cohort).items()}
        for penalty in cohort.penalties
    )


@dataclass(frozen=True)
class Terms:
    """Terms of the loss beside the cross-entropy.

    Args:
        penalties: the terms.
        anchors: by penalty, the parameters of the models that it compares with; of all clients of a
            cohort, or of one.
    """

    penalties: tuple[Penalty, ...] = ()
    anchors: Anchors = ()

    @classmethod
    def of(cls, cohort: Cohort, spec: ParamSpec) -> Terms:
        """Those of a cohort."""
        return cls(cohort.penalties, anchors_of(cohort, spec))

    @classmethod
    def of_first(cls, cohort: Cohort, spec: ParamSpec) -> Terms:
        """Those of a cohort's first client, without the leading axis."""
        alone = tree_map(lambda value: value[0], anchors_of(cohort, spec))
        return cls(cohort.penalties, alone)


NO_TERMS = Terms()


def need_features(penalties: Iterable[Penalty]) -> bool:
    """Whether one of them needs features."""
    return any(penalty.features for penalty in penalties)


def total(
    penalties: Sequence[Penalty],
    outputs: Outputs,
    anchors: Sequence[Mapping[str, Outputs]],
    y: Tensor,
) -> Tensor:
    """Sum [batch] of ``penalties``, of which there is at least one.

    Args:
        penalties: the terms.
        outputs: of the model in training.
        anchors: by penalty, those of its anchors.
        y: [batch], labels.
    """
    first, *others = (
        penalty.loss(outputs, others, y) for penalty, others in zip(penalties, anchors, strict=True)
    )
    return sum(others, start=first)
