"""Clients that train together, and the terms of their loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from wirelessfl.models.submodels import ParamSpec


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
        outputs: outputs of the model in training.
        anchors: for each penalty, the outputs of its anchors.
        y: [batch], labels.
    """
    first, *others = (
        penalty.loss(outputs, others, y) for penalty, others in zip(penalties, anchors, strict=True)
    )
    return sum(others, start=first)


TEACHER = "teacher"
"""Name of the additional model that the server sends for distillation."""


@dataclass(frozen=True)
class Contrast(Penalty):
    """MOON's term, mu times (3) of Li, He and Song, "Model-Contrastive Federated Learning", 2021.

    mu (-log(e^a / (e^a + e^b))), with a = sim(z, z_glob) / tau, b = sim(z, z_prev) / tau, where sim
    is the cosine similarity. The term draws features towards those of the received model and away
    from those of the client's previous model. Features are the input of the last linear layer; the
    paper adds a projection head before it. In a linear model the features are the samples, and the
    term is constant.

    When a client trains for the first time it has no previous model. The received model takes its
    place, so a = b, and the gradient of the term is zero.

    Args:
        mu: weight of the term.
        tau: temperature.
    """

    features: ClassVar[bool] = True

    mu: float
    tau: float

    def anchors(self, cohort: Cohort) -> dict[str, torch.Tensor]:
        """The received model and the client's ``previous`` model."""
        previous = torch.where(cohort.fresh, cohort.start, cohort.kept["previous"])
        return {"global": cohort.start, "previous": previous}

    def loss(
        self, outputs: Outputs, anchors: Mapping[str, Outputs], y: torch.Tensor
    ) -> torch.Tensor:
        """Mu log(1 + e^(b - a)) of each sample."""
        like, unlike = (
            _cosine(outputs, anchors[name]) / self.tau for name in ("global", "previous")
        )
        return self.mu * torch.nn.functional.softplus(unlike - like)


def _cosine(outputs: Outputs, anchor: Outputs) -> torch.Tensor:
    """Cosine similarities [batch] of features; 0 without a gradient if either vector is zero."""
    a, b = outputs.features, anchor.features
    assert a is not None
    assert b is not None
    sizes: torch.Tensor = a.norm(dim=-1) * b.norm(dim=-1)
    none = sizes == 0  # e.g. all ReLUs are inactive
    return (a * b).sum(-1).masked_fill(none, 0.0) / sizes.masked_fill(none, 1.0)


@dataclass(frozen=True)
class LogitDistillation(Penalty):
    """``weight`` times KL(softmax(teacher) || softmax(student)), at temperature 1."""

    of_classes: ClassVar[bool] = True

    weight: float

    def anchors(self, cohort: Cohort) -> dict[str, torch.Tensor]:
        """The model that the server sends as ``teacher``."""
        return {TEACHER: cohort.server[TEACHER]}

    def loss(
        self, outputs: Outputs, anchors: Mapping[str, Outputs], y: torch.Tensor
    ) -> torch.Tensor:
        """The divergence of each sample."""
        return self.weight * _divergence(anchors[TEACHER].logits.softmax(-1), outputs.logits)


@dataclass(frozen=True)
class RelationDistillation(Penalty):
    """Class-semantic relation distillation (Dong et al., "Federated Class-Incremental Learning").

    ``weight`` times KL(target || softmax(student)), where the target is the sample's one-hot label
    with the entries of the old classes replaced by the teacher's probabilities of them (CVPR 2022,
    Section 3.2). Without old classes the term is the cross-entropy.

    The paper numbers the old classes first, and its teacher has outputs only for them. Its target
    sums to more than 1. It does not state the direction of the divergence, and its code uses
    sigmoids and a binary cross-entropy. This implementation differs: old classes may have any
    labels; the teacher's softmax is over all outputs; the target is normalised to sum to 1 (the
    label of an old class is replaced like any other entry); and the target is the first argument of
    the divergence, as in distillation.

    Args:
        old: labels of the classes that the teacher knows.
    """

    of_classes: ClassVar[bool] = True

    weight: float
    old: tuple[int, ...] = ()

    def anchors(self, cohort: Cohort) -> dict[str, torch.Tensor]:
        """The model that the server sends as ``teacher``."""
        return {TEACHER: cohort.server[TEACHER]}

    def loss(
        self, outputs: Outputs, anchors: Mapping[str, Outputs], y: torch.Tensor
    ) -> torch.Tensor:
        """The divergence of each sample from its target."""
        classes = torch.arange(outputs.logits.shape[-1], device=y.device)
        old = torch.zeros_like(classes, dtype=torch.bool)
        for first, end in _runs(self.old):  # scalars only: a CUDA graph cannot record lists
            old = old | ((classes >= first) & (classes < end))
        teacher = anchors[TEACHER].logits.log_softmax(-1)
        label = torch.zeros_like(teacher).masked_fill(y[:, None] != classes, -torch.inf)  # log 0, 1
        # The softmax of logarithms normalises the target to sum to 1.
        return self.weight * _divergence(
            torch.where(old, teacher, label).softmax(-1), outputs.logits
        )


def _runs(labels: Iterable[int]) -> list[tuple[int, int]]:
    """Ranges (first, end) of consecutive labels; the end is excluded."""
    runs: list[tuple[int, int]] = []
    for label in sorted(set(labels)):
        if runs and runs[-1][1] == label:
            runs[-1] = runs[-1][0], label + 1
        else:
            runs.append((label, label + 1))
    return runs


def _divergence(target: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """KL(target || softmax(logits)) of each row, with 0 log 0 = 0."""
    return torch.nn.functional.kl_div(logits.log_softmax(-1), target, reduction="none").sum(-1)
