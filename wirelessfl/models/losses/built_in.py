"""Built-in losses of classes, of several labels per sample, and of regression; losses by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from channels.concurrency import once
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import described
from wirelessfl.base.needs import Needs
from wirelessfl.base.registry import Kind, by_name, classes_in, subclass
from wirelessfl.base.wording import shown
from wirelessfl.data.labels import class_remedy
from wirelessfl.models.losses.loss import Accuracy, FunctionLoss, Loss, is_binary


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Cross-entropy of outputs [batch, classes] with labels [batch], int64.

    For labels [batch, H, W, ...] and outputs [batch, classes, H, W, ...] it is the mean over the
    pixels of a sample. With ``label_smoothing`` s the target is 1 - s + s / C for the label and
    s / C for the other C - 1 classes (Szegedy et al., CVPR 2016).

    >>> import torch
    >>> from wirelessfl.losses import CrossEntropy
    >>> loss = CrossEntropy(label_smoothing=0.1)
    >>> values = loss.values(torch.tensor([[0.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 0]))
    >>> [round(value, 3) for value in values.tolist()]
    [0.693, 0.45]
    """

    name = "cross-entropy"
    accuracy: ClassVar[Accuracy | None] = "classes"

    label_smoothing: Annotated[
        float, Field(ge=0, lt=1, description="weight of the uniform distribution in the labels")
    ] = 0.0

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Loss`."""
        losses = torch.nn.functional.cross_entropy(
            outputs, labels, reduction="none", label_smoothing=self.label_smoothing
        )
        return losses if losses.dim() == 1 else losses.flatten(1).mean(1)

    def reduced(
        self, outputs: torch.Tensor, labels: torch.Tensor, how: Literal["sum", "mean"]
    ) -> torch.Tensor:
        """See :class:`Loss`."""
        if labels.dim() > 1:
            return super().reduced(outputs, labels, how)
        return torch.nn.functional.cross_entropy(
            outputs, labels, reduction=how, label_smoothing=self.label_smoothing
        )

    def fits(self, labels: torch.Tensor) -> bool:
        """Whether labels are integers."""
        return labels.dtype == torch.int64

    def shapes(self, labels: torch.Tensor, classes: int) -> tuple[tuple[int, ...], ...]:
        """A score per class, of each sample or pixel."""
        return ((len(labels), classes, *labels.shape[1:]),)


@dataclass(frozen=True)
class BinaryCrossEntropy(Loss):
    """Binary cross-entropy of logits [batch, L] with labels [batch, L] in {0, 1}.

    The loss of a sample is the mean over its labels. A label is right if the sign of its logit is.
    """

    name = "binary-cross-entropy"
    accuracy: ClassVar[Accuracy | None] = "signs"

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Loss`."""
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            outputs.reshape(labels.shape), labels.to(outputs.dtype), reduction="none"
        )
        return losses if losses.dim() == 1 else losses.flatten(1).mean(1)

    def fits(self, labels: torch.Tensor) -> bool:
        """Whether all labels are 0 or 1, and there may be several per sample."""
        several = labels.dim() > 1 or labels.dtype == torch.float32
        return several and is_binary(labels)

    def shapes(self, labels: torch.Tensor, classes: int) -> tuple[tuple[int, ...], ...]:
        """An output per label."""
        return of_labels(labels)


def of_labels(labels: torch.Tensor) -> tuple[tuple[int, ...], ...]:
    """The shape of the labels; [batch, 1] too, if there is one per sample."""
    shape = tuple(labels.shape)
    return (shape,) if len(shape) > 1 else ((*shape, 1), shape)


@dataclass(frozen=True)
class Regression(Loss):
    """Base class of losses of real labels [batch] or [batch, ...], float32.

    Outputs have the shape of the labels, or [batch, 1] for labels [batch]. The loss of a sample is
    the mean over its labels.
    """

    name = ""

    @abstractmethod
    def elements(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of each label, of the shape of ``labels``."""

    def values(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Loss`."""
        losses = self.elements(outputs.reshape(labels.shape), labels)
        return losses if losses.dim() == 1 else losses.flatten(1).mean(1)

    def fits(self, labels: torch.Tensor) -> bool:
        """Whether labels are real numbers."""
        return labels.dtype == torch.float32

    def shapes(self, labels: torch.Tensor, classes: int) -> tuple[tuple[int, ...], ...]:
        """An output per label."""
        return of_labels(labels)


@dataclass(frozen=True)
class MSE(Regression):
    """Mean squared error over the labels of a sample."""

    name = "mse"

    def elements(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Regression`."""
        return torch.nn.functional.mse_loss(outputs, labels, reduction="none")


@dataclass(frozen=True)
class L1(Regression):
    """Mean absolute error over the labels of a sample."""

    name = "l1"

    def elements(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Regression`."""
        return torch.nn.functional.l1_loss(outputs, labels, reduction="none")


@dataclass(frozen=True)
class Huber(Regression):
    """Huber loss, the mean over the labels of a sample (Huber, Ann. Math. Statist., 1964).

    It is e^2 / 2 for errors |e| <= d, and d (|e| - d / 2) for larger ones; d is ``huber_delta``.
    """

    name = "huber"

    huber_delta: Annotated[
        float,
        Field(gt=0, description="error above which the Huber loss is linear, in units of labels"),
    ] = 1.0

    def elements(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Regression`."""
        return torch.nn.functional.huber_loss(
            outputs, labels, reduction="none", delta=self.huber_delta
        )


def _chosen(name: str) -> Loss:
    """Unpickle the choice of a function, whose generated class cannot be imported by name."""
    return _function_loss(name)()


@once
def _function_loss(name: str) -> type[FunctionLoss]:
    """The class of the choice of a user's function, which has no settings."""
    return make_dataclass(
        "OwnFunction",
        [],
        bases=(FunctionLoss,),
        namespace={
            "name": name,
            "function": staticmethod(by_name("loss", name, {})),
            "__doc__": "A function of the user.",
            "__module__": __name__,
            "__reduce__": lambda self: (_chosen, (name,)),
        },
        frozen=True,
    )


class LossKind(Kind[Loss]):
    """Built-in losses, and functions and classes of the user."""

    def classes(self) -> Mapping[str, type[Loss]]:
        """The built-in losses, by name."""
        return classes_in(self.package, Loss)

    def find(self, name: str) -> type[Loss]:
        """The loss called ``name``, or the user's function or class at that import path."""
        choice = by_name("loss", name, self.classes())
        if isinstance(choice, type) and issubclass(choice, Loss):
            loss: type[Loss] = subclass("loss", name, choice, Loss)
            return loss
        if not callable(choice) or isinstance(choice, type):
            raise ConfigError(
                f"loss {name!r} is {shown(choice)}: give a function f(outputs, labels), or a class "
                "derived from wirelessfl.losses.Loss."
            )
        return _function_loss(name)


NOT_GIVEN = Needs(
    lambda run, _: run.settings.given.loss is None,
    "conflicts with loss=..., which is given to wirelessfl.run",
)
LOSSES: Kind[Loss] = LossKind(
    "loss",
    __package__ or "",
    Loss,
    default="cross-entropy",
    table=(NOT_GIVEN,),
    text="loss of a sample, or module:function",
    heading="model",
)
"""All losses."""


def check_labels(loss: Loss, labels: torch.Tensor, data: str) -> None:
    """Raise unless ``loss`` takes the labels.

    >>> import torch
    >>> from wirelessfl.losses import CrossEntropy, check_labels
    >>> try:
    ...     check_labels(CrossEntropy(), torch.tensor([0.1, 0.7]), data="mine")
    ... except ValueError as error:
    ...     print(str(error)[:40])
    loss "cross-entropy" does not take the l

    Args:
        data: name of the data set.
    """
    if loss.fits(labels):
        return
    fitting = [f'"{name}"' for name, kind in LOSSES.classes().items() if kind().fits(labels)]
    choose = f"{', '.join(fitting)}, or your own" if fitting else "your own"
    raise ConfigError(
        f'loss "{loss.title}" does not take the labels of data set {data!r}, which are '
        f"{described(labels)}{class_remedy(labels)} loss {choose} by its path module:function."
    )
