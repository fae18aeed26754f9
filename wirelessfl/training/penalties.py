"""Additional loss terms of clients, which compare outputs of several models on the same samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from wirelessfl.training.rules import Cohort, Outputs, Penalty

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


def _cosine(one: Outputs, two: Outputs) -> torch.Tensor:
    """Cosine similarities [batch] of features; 0 without a gradient if either vector is zero."""
    a, b = one.features, two.features
    assert a is not None
    assert b is not None
    sizes: torch.Tensor = a.norm(dim=-1) * b.norm(dim=-1)
    none = sizes == 0  # e.g. all ReLUs are inactive
    return (a * b).sum(-1).masked_fill(none, 0.0) / sizes.masked_fill(none, 1.0)


@dataclass(frozen=True)
class LogitDistillation(Penalty):
    """``weight`` times KL(softmax(teacher) || softmax(student)), at temperature 1.

    Args:
        weight: weight of the term.
    """

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
        weight: weight of the term.
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
        known = anchors[TEACHER].logits.log_softmax(-1)
        label = torch.zeros_like(known).masked_fill(y[:, None] != classes, -torch.inf)  # log 0, 1
        # The softmax of logarithms normalises the target to sum to 1.
        return self.weight * _divergence(torch.where(old, known, label).softmax(-1), outputs.logits)


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
