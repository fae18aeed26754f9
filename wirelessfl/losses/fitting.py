"""Which losses fit the labels of a data set."""

from __future__ import annotations

import torch

from wirelessfl.data.labels import class_remedy
from wirelessfl.errors import ConfigError
from wirelessfl.guard import described
from wirelessfl.losses.kind import LOSSES
from wirelessfl.losses.loss import Loss


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
