"""Losses: a value for each sample from outputs and labels; the interface, and users' functions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import UnfitError, calling, described, returns
from wirelessfl.base.registry import Choice

Accuracy = Literal["classes", "signs"]
"""What is right in an output: the largest entry over the classes, or the sign of each entry."""


def _values(value: Any, loss: Loss, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Check for one value per sample."""
    if not isinstance(value, torch.Tensor) or value.shape != labels.shape[:1]:
        raise UnfitError(described(value), f"the loss of each of the {len(labels)} samples")
    return value


@dataclass(frozen=True)
class Loss(Choice, ABC):
    """Base class of losses.

    A sample's loss must depend on that sample only, because batches are padded.

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from wirelessfl.losses import Loss
    >>> @dataclass(frozen=True)
    ... class PowerLoss(Loss):
    ...     # Mean of |output - label|^power
    ...     power: float = 4.0
    ...     def values(self, outputs, labels):
    ...         return (outputs - labels).abs().pow(self.power).flatten(1).mean(1)
    >>> PowerLoss().values(torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [0.0]])).tolist()
    [1.0, 16.0]
    """

    name = "loss"

    accuracy: ClassVar[Accuracy | None] = None
    """What counts as right; None if outputs are neither right nor wrong, as in regression."""

    @returns(_values)
    @abstractmethod
    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of each sample, [batch].

        Args:
            outputs: [batch, ...], outputs of the model.
            labels: [batch, ...].
        """

    def reduced(
        self, outputs: torch.Tensor, labels: torch.Tensor, how: Literal["sum", "mean"]
    ) -> torch.Tensor:
        """Sum or mean of the samples' losses, in evaluation."""
        values = self.values(outputs, labels).double()
        return values.sum() if how == "sum" else values.mean()

    def fits(self, labels: torch.Tensor) -> bool:
        """Whether the loss takes labels of this type, shape and range."""
        return True

    def shapes(self, labels: torch.Tensor, classes: int) -> tuple[tuple[int, ...], ...] | None:
        """The shapes of outputs that the loss takes for ``labels`` [batch, ...]; None for any.

        Args:
            labels: labels of a batch.
            classes: number of outputs of the model.
        """
        return None


def is_binary(labels: torch.Tensor) -> bool:
    """Whether all labels are 0 or 1."""
    return bool(((labels == 0) | (labels == 1)).all())


def accuracies(kind: Accuracy, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Fraction of right predictions of each sample, [batch]: booleans if it has a single one.

    >>> import torch
    >>> from wirelessfl.losses import accuracies
    >>> outputs = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    >>> accuracies("classes", outputs, torch.tensor([0, 0])).tolist()
    [True, False]

    Args:
        kind: what counts as right.
        outputs: [batch, classes, ...] for "classes", or as many as labels for "signs".
        labels: [batch, ...].
    """
    if kind == "classes":
        right = outputs.argmax(1) == labels
    else:
        right = (outputs.reshape(labels.shape) > 0) == (labels > 0.5)
    return right if right.dim() == 1 else right.flatten(1).to(torch.float64).mean(1)


Function = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
Way = Literal["batch", "vmap", "loop"]
"""How a function is called: with a batch, with each sample by vmap, or with each sample in turn."""


@dataclass(frozen=True)
class FunctionLoss(Loss):
    """A function of the user as a choice, before it is tried on samples, see ``ready``.

    >>> from wirelessfl.losses import LOSSES
    >>> loss = LOSSES.find("torch.nn.functional:cross_entropy")
    >>> loss.name, loss.function.__name__
    ('torch.nn.functional:cross_entropy', 'cross_entropy')
    """

    name = ""
    function: ClassVar[Any] = None
    """The function; None if it is given as an object."""

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Not available: ``ready`` gives the loss to use."""
        raise ConfigError(f"loss {self.title!r} must be tried on samples first, by ready().")


@dataclass(frozen=True)
class GivenLoss(FunctionLoss):
    """A function given to ``wirelessfl.run``.

    >>> from wirelessfl.losses import GivenLoss
    >>> GivenLoss().title
    'loss=...'
    """

    name = ""
    title = "loss=..."


@dataclass(frozen=True)
class OwnLoss(Loss):
    """A loss that a function ``f(outputs, labels) -> Tensor`` of the user computes.

    The function returns the loss of each sample [batch], or [batch, ...], of which each sample's
    mean is taken. Or it returns a scalar. It is then called with each sample alone, as a batch of
    one, by ``torch.vmap`` where possible, so that padded samples have no effect and every sample
    has its weight. A mean over the batch, as of ``torch.nn.functional``, remains what it is. A
    scalar in which samples affect each other does not: a weighted mean divides by the weight of
    its only sample, and a contrastive loss has nothing to compare. Such a function must return
    [batch].

    >>> import torch
    >>> from wirelessfl.losses import OwnLoss
    >>> loss = OwnLoss(torch.nn.functional.mse_loss, called="mse", way="vmap")
    >>> loss.values(torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [0.0]])).tolist()
    [1.0, 4.0]

    Args:
        called: its name, for messages.
        way: how it is called.
        right: what counts as right; None if outputs are neither right nor wrong.
    """

    name = ""

    function: Function
    called: str
    way: Way
    right: Accuracy | None = None

    @property
    def accuracy(self) -> Accuracy | None:  # type: ignore[override]
        """See :class:`Loss`."""
        return self.right

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Loss`."""
        with calling(f"loss {self.called!r}"):
            if self.way == "batch":
                losses = self.function(outputs, labels)
            elif self.way == "vmap":
                losses = torch.vmap(self._alone)(outputs, labels)
            else:
                alone = [self._alone(*sample) for sample in zip(outputs, labels, strict=True)]
                losses = torch.stack(alone) if alone else outputs.new_zeros(0)
        return losses if losses.dim() == 1 else losses.flatten(1).mean(1)

    def _alone(self, output: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return self.function(output[None], label[None]).reshape(())


@dataclass(frozen=True)
class Probe(Loss):
    """The mean square of the outputs, which needs no labels: for checks of models.

    >>> import torch
    >>> from wirelessfl.losses import Probe
    >>> Probe().values(torch.tensor([[1.0, 2.0]]), torch.empty(1)).tolist()
    [2.5]
    """

    name = ""

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Loss`."""
        return outputs.flatten(1).square().mean(1)


def ready(
    loss: Loss,
    function: Function | None,
    outputs: torch.Tensor,
    y: torch.Tensor,
    labels: torch.Tensor,
) -> tuple[Loss, str | None]:
    """The loss to train with: a user's function is tried on a few samples.

    >>> import torch
    >>> from wirelessfl.losses import GivenLoss, ready
    >>> outputs, labels = torch.tensor([[1.0], [2.0]]), torch.zeros(2, 1)
    >>> loss, message = ready(GivenLoss(), torch.nn.functional.l1_loss, outputs, labels, labels)
    >>> loss.values(outputs, labels).tolist(), loss.way
    ([1.0, 2.0], 'vmap')

    Args:
        loss: the chosen loss.
        function: the function given as an object, if any.
        outputs: [batch, ...], outputs of the model for a few samples.
        y: [batch, ...], their labels.

    Returns:
        The loss, and a message for the user, if any.
    """
    if not isinstance(loss, FunctionLoss):
        return loss, None
    losses_of: Any = function if isinstance(loss, GivenLoss) else loss.function
    called = loss.title
    if isinstance(loss, GivenLoss):
        called = str(getattr(losses_of, "__name__", type(losses_of).__name__))
    right = _right(outputs, y, labels)
    losses = _tried(losses_of, called, outputs, y)
    if losses.dim():
        trained = OwnLoss(losses_of, called, "batch", right)
        _check_apart(trained, outputs, y)
        return trained, None
    trained = OwnLoss(losses_of, called, "loop", right)
    alone = trained.values(outputs, y)
    try:
        by_vmap = OwnLoss(losses_of, called, "vmap", right)
        if torch.allclose(by_vmap.values(outputs, y), alone, 1e-4, 1e-6, equal_nan=True):
            trained = by_vmap
    except Exception:
        pass
    if not any(_same(losses, whole) for whole in (alone.mean(), alone.sum())):
        return trained, (
            f"loss {called!r} of {len(y)} samples is {float(losses):.4g}, but the mean of their "
            f"separate losses, which is trained, is {float(alone.mean()):.4g}: samples of a batch "
            "affect each other, as in a weighted mean. To train with your weights, return the loss "
            "of each sample, [batch]."
        )
    return trained, None


def _tried(function: Function, called: str, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What the function returns for a few samples, if it is a loss."""
    leaf = outputs.detach().clone().requires_grad_()
    with (
        torch.enable_grad(),
        warnings.catch_warnings(),
        calling(f"loss {called!r}", ConfigError),
    ):
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad")  # an error here
        losses: Any = function(leaf, y.clone())
    expected = "a tensor [batch] or [batch, ...] with the loss of each sample, or a scalar tensor"
    if not isinstance(losses, torch.Tensor) or not losses.is_floating_point():
        problem = described(losses)
    elif losses.dim() and len(losses) != len(y):
        problem = f"{described(losses)} for {len(y)} samples"
    elif not losses.requires_grad:
        problem = "a value without a gradient, computed without the outputs or detached from them"
    else:
        return losses.detach()
    raise ConfigError(f"loss {called!r} returned {problem}: return {expected}.")


def _check_apart(loss: OwnLoss, outputs: torch.Tensor, y: torch.Tensor) -> None:
    """Raise if a sample's loss depends on the other samples of its batch."""
    half = max(len(y) // 2, 1)
    whole, part = loss.values(outputs, y)[:half], loss.values(outputs[:half], y[:half])
    if not _same(whole, part):
        raise ConfigError(
            f"loss {loss.called!r} mixes the samples of a batch: the loss of sample 0 is "
            f"{float(whole[0]):.4g} among {len(y)} samples, and {float(part[0]):.4g} among {half}. "
            "Return the loss of each sample by itself."
        )


def _same(losses: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(losses.double(), expected.double(), 1e-5, 1e-6, equal_nan=True)


def _right(outputs: torch.Tensor, y: torch.Tensor, labels: torch.Tensor) -> Accuracy | None:
    """What counts as right for these outputs and labels."""
    shape = tuple(outputs.shape)
    per_class = len(shape) > 1 and shape[1] > 1 and (*shape[:1], *shape[2:]) == tuple(y.shape)
    if labels.dtype == torch.int64 and per_class:
        return "classes"
    return "signs" if outputs.numel() == y.numel() and is_binary(labels) else None
