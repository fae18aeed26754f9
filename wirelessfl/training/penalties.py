"""Terms of the clients' loss beside the cross-entropy, which compare models on the same samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from wirelessfl.training.cohort import Cohort, Outputs, Penalty

TEACHER = "teacher"
"""What the server sends beside its own state for clients to distil from."""


@dataclass(frozen=True)
class Contrast(Penalty):
    """MOON's term, mu times (3) of Li, He and Song, "Model-Contrastive Federated Learning", 2021.

    mu (-log(e^a / (e^a + e^b))), with a = sim(z, z_glob) / tau, b = sim(z, z_prev) / tau, and sim
    the cosine: features shall be like those of the model that was sent, and unlike those of the
    client's previous one. Features are the input of the last linear layer; the paper has a
    projection head of its own before them. Of a linear model they are the samples, and the term is
    constant.

    A client's first turn has no previous model: the one it was sent stands for it, a = b, and the
    gradient of the term is zero.

    Args:
        mu: weight.
        tau: temperature.
    """

    features: ClassVar[bool] = True

    mu: float
    tau: float

    def anchors(self, cohort: Cohort) -> dict[str, Tensor]:
        """The model that was sent, and what the client keeps as ``previous``."""
        previous = torch.where(cohort.fresh, cohort.start, cohort.kept["previous"])
        return {"global": cohort.start, "previous": previous}

    def loss(self, outputs: Outputs, anchors: Mapping[str, Outputs], y: Tensor) -> Tensor:
        """Mu log(1 + e^(b - a))."""
        like, unlike = (
            _cosine(outputs, anchors[name]) / self.tau for name in ("global", "previous")
        )
        return self.mu * F.softplus(unlike - like)


def _cosine(one: Outputs, two: Outputs) -> Tensor:
    """[batch], cosines of features; 0, without a gradient, where those of either are all zero."""
    a, b = one.features, two.features
    assert a is not None
    assert b is not None
    sizes: Tensor = a.norm(dim=-1) * b.norm(dim=-1)
    none = sizes == 0  # of dead ReLUs
    return (a * b).sum(-1).masked_fill(none, 0.0) / sizes.masked_fill(none, 1.0)


@dataclass(frozen=True)
class LogitDistillation(Penalty):
    """``weight`` times KL(softmax(teacher) || softmax(student)), at temperature 1.

    Args:
        weight: of the term.
    """

    weight: float

    def anchors(self, cohort: Cohort) -> dict[str, Tensor]:
        """The model that the server sends as ``teacher``."""
        return {TEACHER: cohort.server[TEACHER]}

    def loss(self, outputs: Outputs, anchors: Mapping[str, Outputs], y: Tensor) -> Tensor:
        """The divergence of each sample."""
        return self.weight * _divergence(anchors[TEACHER].logits.softmax(-1), outputs.logits)


@dataclass(frozen=True)
class RelationDistillation(Penalty):
    """Class-semantic relation distillation (Dong et al., "Federated Class-Incremental Learning").

    ``weight`` times KL(target || softmax(student)), where the target is the sample's one-hot label
    with the entries of the old classes replaced by the teacher's probabilities of them (CVPR 2022,
    Section 3.2). Without old classes it is the cross-entropy.

    The paper counts the old classes first, and its teacher has outputs for them alone; its target
    sums to more than 1, it does not say in which direction the divergence is meant, and its code
    takes sigmoids and a binary cross-entropy. Ours: old classes stand anywhere; the teacher's
    softmax goes over all outputs; the target is normalised to sum 1 (the label of an old class is
    replaced like any other entry); and it is the first argument of the divergence, as in
    distillation.

    Args:
        weight: of the term.
        old: labels of the classes that the teacher knows.
    """

    weight: float
    old: tuple[int, ...] = ()

    def anchors(self, cohort: Cohort) -> dict[str, Tensor]:
        """The model that the server sends as ``teacher``."""
        return {TEACHER: cohort.server[TEACHER]}

    def loss(self, outputs: Outputs, anchors: Mapping[str, Outputs], y: Tensor) -> Tensor:
        """The divergence of each sample from its target."""
        classes = torch.arange(outputs.logits.shape[-1], device=y.device)
        old = torch.zeros_like(classes, dtype=torch.bool)
        for first, end in _runs(self.old):  # by numbers alone: a GPU's recording takes no lists
            old = old | ((classes >= first) & (classes < end))
        known = anchors[TEACHER].logits.log_softmax(-1)
        label = torch.zeros_like(known).masked_fill(y[:, None] != classes, -torch.inf)  # log 0, 1
        # Of logarithms, the softmax is what normalises to sum 1.
        return self.weight * _divergence(torch.where(old, known, label).softmax(-1), outputs.logits)


def _runs(labels: Iterable[int]) -> list[tuple[int, int]]:
    """The same labels as ranges, ends excluded."""
    runs: list[tuple[int, int]] = []
    for label in sorted(set(labels)):
        if runs and runs[-1][1] == label:
            runs[-1] = runs[-1][0], label + 1
        else:
            runs.append((label, label + 1))
    return runs


def _divergence(target: Tensor, logits: Tensor) -> Tensor:
    """KL(target || softmax(logits)) of each row, where 0 log 0 is 0."""
    return F.kl_div(logits.log_softmax(-1), target, reduction="none").sum(-1)
