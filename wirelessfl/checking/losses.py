"""Contracts of a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wirelessfl.checking.contract import (
    INPUT,
    Contract,
    NotTestedError,
    broken,
    copied,
    difference,
    unchanged,
)
from wirelessfl.checking.runs import BASIC, CHUNKS, CREATED, EXECUTORS, PICKLED
from wirelessfl.checking.subject import Subject
from wirelessfl.checking.trial_data import outputs_and_labels
from wirelessfl.losses import FunctionLoss, Loss, OwnLoss, ready

CLOSE = 1e-4
VALUES = "returns the loss of each sample, or a scalar"
SAME = "gives the same loss twice"


def _tried(subject: Subject) -> tuple[Loss, Tensor, Tensor, str | None]:
    """The loss as a run uses it, outputs, labels, and the run's note about it."""
    assert subject.data is not None
    outputs, labels = outputs_and_labels(subject.data, subject.stream)
    loss, note = ready(
        subject.made(), None, outputs.clone(), labels.clone(), subject.data.train_labels
    )
    return loss, outputs, labels, note


def _values(subject: Subject) -> None:
    loss, outputs, labels, _ = _tried(subject)
    found = loss.values(outputs, labels)
    if found.shape != labels.shape[:1]:
        broken(f"values returns {list(found.shape)} for {len(labels)} samples: return [batch]")
    if not bool(found.isfinite().all()):
        broken("the loss of moderate outputs is not finite: use log_softmax, logsumexp or a clamp")


def _gradient(subject: Subject) -> None:
    loss, outputs, labels, _ = _tried(subject)
    leaf = outputs.clone().requires_grad_()
    found = loss.values(leaf, labels)
    if not found.requires_grad:
        broken("it has no gradient: compute it from the outputs, without detach, item or argmax")
    (gradient,) = torch.autograd.grad(found.sum(), leaf, allow_unused=True)
    if gradient is None or not bool(gradient.isfinite().all()):
        broken("the gradient of moderate outputs is not finite")
    if not bool(gradient.any()):
        broken("its gradient is 0 everywhere, so nothing is learnt: use no argmax or rounding")


def _direct(subject: Subject) -> tuple[Callable[..., Any], Tensor, Tensor]:
    """The user's function or method itself, outputs and labels."""
    assert subject.data is not None
    made = subject.made()
    function = made.function if isinstance(made, FunctionLoss) else made.values
    return function, *outputs_and_labels(subject.data, subject.stream)


def _input(subject: Subject) -> None:
    function, outputs, labels = _direct(subject)
    before = copied([outputs, labels])
    function(outputs, labels)
    for name, one, two in zip(("outputs", "labels"), before, (outputs, labels), strict=True):
        unchanged(one, two, name)


def _twice(subject: Subject) -> None:
    function, outputs, labels = _direct(subject)
    one, two = (function(outputs.clone(), labels.clone()) for _ in range(2))
    if difference(one, two) is not None:
        broken("a second call gives another loss: draw no random numbers, and keep no state")


def _apart(subject: Subject) -> None:
    loss, outputs, labels, note = _tried(subject)
    if note is not None:
        broken(note)
    together = loss.values(outputs, labels)
    for sample in range(len(labels)):
        one = slice(sample, sample + 1)
        if difference(together[one], loss.values(outputs[one], labels[one]), CLOSE) is not None:
            broken(
                f"the loss of sample {sample} depends on the other samples of its batch, which "
                "may be padding: return the loss of each sample by itself"
            )


def _vmap(subject: Subject) -> None:
    loss, outputs, labels, _ = _tried(subject)
    if isinstance(loss, OwnLoss) and loss.way == "loop":
        raise NotTestedError(
            "torch.vmap cannot call it, so it is called once per sample, which is slow: "
            "return [batch] instead of a scalar"
        )

    def alone(output: Tensor, label: Tensor) -> Tensor:
        return loss.values(output[None], label[None])[0]

    loop = torch.stack([alone(*one) for one in zip(outputs, labels, strict=True)])
    try:
        by_vmap = torch.vmap(alone)(outputs, labels)
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise NotTestedError(f"torch.vmap cannot call it: {reason}") from error
    if difference(loop, by_vmap, CLOSE) is not None:
        broken("torch.vmap gives another loss than a loop over the samples")


CONTRACTS = (
    CREATED,
    PICKLED,
    Contract(INPUT, _input, needs=(CREATED.name,)),
    Contract(SAME, _twice, needs=(CREATED.name,)),
    Contract(VALUES, _values, needs=(SAME,)),
    Contract("has a gradient", _gradient, needs=(VALUES,)),
    Contract("does not depend on the other samples of a batch", _apart, needs=(VALUES,)),
    Contract("gives the same by vmap and in a loop", _vmap, needs=(VALUES,)),
    *BASIC,
    CHUNKS,
    EXECUTORS,
)
