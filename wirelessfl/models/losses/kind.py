"""The kind of choice of losses: built-in ones, and functions and classes of the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass

import torch

from channels.concurrency import once
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import described
from wirelessfl.base.needs import Needs
from wirelessfl.base.registry import Kind, by_name, classes_in, subclass
from wirelessfl.base.wording import shown
from wirelessfl.data.labels import class_remedy
from wirelessfl.models.losses.loss import Loss
from wirelessfl.models.losses.own import FunctionLoss


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
        """The loss called ``name``, or the user's function or class at that import path.

        Raises:
            ConfigError: it does not exist, or is neither a function nor a loss.
        """
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
        loss: the loss.
        labels: all training labels.
        data: name of the data set.

    Raises:
        ConfigError: the loss does not fit; the message names those that do.
    """
    if loss.fits(labels):
        return
    fitting = [f'"{name}"' for name, kind in LOSSES.classes().items() if kind().fits(labels)]
    choose = f"{', '.join(fitting)}, or your own" if fitting else "your own"
    raise ConfigError(
        f'loss "{loss.title}" does not take the labels of data set {data!r}, which are '
        f"{described(labels)}{class_remedy(labels)} loss {choose} by its path module:function."
    )
